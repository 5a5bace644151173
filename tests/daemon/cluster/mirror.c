// Detection of changes that a mirror missed, by an answer with only the latest changes.
#include "daemon/cluster/site.h"

#include "tests/test.h"

static struct mirror mirror;

static bool is_whole(int64_t total, int n, const struct etcd_entry entries[])
{
    return mirror_is_whole(
        &mirror, &(struct etcd_answer){.revision = 99, .total = total, .n = n, .entries = entries});
}

static void test_whole(void)
{
    const struct etcd_entry all[] = {
        {.key = "/framed/yard/camera/gate", .value = "", .version = 1, .mod_revision = 4},
        {.key = "/framed/yard/node/box1", .value = "", .version = 3, .mod_revision = 9},
        {.key = "/framed/yard/node/box2", .value = "", .version = 1, .mod_revision = 9}};
    const struct etcd_entry changed[] = {
        all[1], {.key = "/framed/yard/node/box2", .value = "", .version = 2, .mod_revision = 11}};
    const struct etcd_entry added[] = {
        all[1], all[2], {.key = "/framed/yard/plan", .value = "", .mod_revision = 12}};
    CHECK(mirror_open(&mirror, "/framed/yard/") == 0, "no memory");
    CHECK(mirror_newest(&mirror) == 0, "%lld", (long long)mirror_newest(&mirror));
    CHECK(mirror_set(&mirror, &(struct etcd_answer){.revision = 9, .n = 3, .entries = all}) == 0,
          "no memory");
    CHECK(mirror_newest(&mirror) == 9, "%lld", (long long)mirror_newest(&mirror));
    CHECK(is_whole(3, 2, all + 1), "nothing changed");
    CHECK(!is_whole(3, 2, changed), "a key changed");
    CHECK(!is_whole(3, 3, added), "a key came, and another left");
    CHECK(!is_whole(2, 2, all + 1), "a key left");
    CHECK(!is_whole(3, 0, NULL), "an older store, without the newest key");
    mirror_close(&mirror);
}

int main(void)
{
    TEST(test_whole());
    return test_end();
}
