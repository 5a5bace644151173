// The times at which a box writes the next plan; tests/daemon/cluster/plan.c tests its contents.
#include "daemon/cluster/planner.h"

#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/cluster/etcd.h"
#include "tests/test.h"

static struct mirror mirror;
static struct site site;
static struct planner planner;
static int64_t revision;

static void put(const char *key, const char *value)
{
    char whole[256];
    snprintf(whole, sizeof whole, "/framed/yard/%s", key);
    const struct etcd_entry entry = {.key = whole,
                                     .value = value,
                                     .length = strlen(value),
                                     .version = 1,
                                     .mod_revision = ++revision};
    const struct etcd_answer answer = {.revision = revision, .entries = &entry, .n = 1};
    CHECK(mirror_change(&mirror, &answer) == 0, "%s", key);
}

static void put_nodes(int obeys, int other_obeys)
{
    char json[256];
    const char *const format = "{\"schema\":1,\"incarnation\":5,\"obeys\":%d,\"room\":8}";
    snprintf(json, sizeof json, format, obeys);
    put("node/box1", json);
    snprintf(json, sizeof json, format, other_obeys);
    put("node/box2", json);
}

// Makes a step of the member's thread.
static void step(void)
{
    struct site next;
    CHECK(site_read(&next, &mirror, &site) == 0, "no memory");
    site_clear(&site);
    site = next;
    planner_note_nodes(&planner);
    CHECK(planner_advance(&planner) == 0, "it does not plan");
}

static void written(void *opaque, int rc)
{
    (void)opaque, (void)rc;
}

static void begin(struct etcd *etcd, const char *own)
{
    site_clear(&site);
    mirror_close(&mirror);
    CHECK(mirror_open(&mirror, "/framed/yard/") == 0, "no memory");
    planner = (struct planner){.etcd = etcd,
                               .mirror = &mirror,
                               .site = &site,
                               .own = own,
                               .timeout_ns = 1000000000,
                               .written = written};
    put("camera/gate", "{\"schema\":1,\"text\":\"\"}");
    put("plan", "{\"schema\":1,\"version\":7,\"cameras\":{\"gate\":{\"node\":\"box1\",\"bound\":5,"
                "\"generation\":1}}}");
}

static bool is_due_within(int64_t from_ms, int64_t to_ms)
{
    const int64_t ms = (planner_due_ns(&planner) - boottime_ns()) / 1000000;
    return planner_due_ns(&planner) && ms >= from_ms && ms <= to_ms;
}

static void test_turns(struct etcd *etcd)
{
    begin(etcd, "box1");
    put_nodes(7, 7);
    step();
    CHECK(!planner.writing && planner_due_ns(&planner) == 0, "a plan that stands");
    put("camera/yard", "{\"schema\":1,\"text\":\"\"}");
    step();
    CHECK(planner.writing, "the first box writes at once");
    begin(etcd, "box2");
    put_nodes(7, 7);
    put("camera/yard", "{\"schema\":1,\"text\":\"\"}");
    step();
    CHECK(!planner.writing && is_due_within(50, 150), "the second waits for the first");
}

// Successive changes make few plans: the next is written after all boxes obey the one before, or
// have had time to.
static void test_gathers(struct etcd *etcd)
{
    begin(etcd, "box1");
    put_nodes(7, 6);
    put("camera/yard", "{\"schema\":1,\"text\":\"\"}");
    step();
    CHECK(!planner.writing && is_due_within(1500, 2000), "a box does not obey yet");
    usleep(2050000);
    step();
    CHECK(planner.writing, "it need not obey for ever");
    begin(etcd, "box2");
    put_nodes(6, 7);
    put("camera/yard", "{\"schema\":1,\"text\":\"\"}");
    step();
    CHECK(!planner.writing && is_due_within(1500, 2000), "the other box does not obey yet");
    put_nodes(7, 7);
    step();
    CHECK(!planner.writing && is_due_within(50, 150), "its turn is behind the other's");
    begin(etcd, "box1");
    put_nodes(7, 6);
    step();
    CHECK(!planner.writing, "nothing changed");
    put_nodes(7, 7);
    put("camera/yard", "{\"schema\":1,\"text\":\"\"}");
    step();
    CHECK(planner.writing, "all obey");
}

int main(void)
{
    const char *const endpoint = "http://127.0.0.1:9"; // nothing is sent
    struct etcd *etcd = NULL;
    CHECK(etcd_open(&etcd, &(struct etcd_options){.endpoints = &endpoint, .n_endpoints = 1}) == 0,
          "no memory");
    TEST(test_turns(etcd));
    TEST(test_gathers(etcd));
    etcd_close(etcd);
    site_clear(&site);
    mirror_close(&mirror);
    return test_end();
}
