// How long no other spare is opened, after one, several and very many that were of no use.
#include "daemon/input/spare_pause.h"

#include "tests/test.h"

static const int64_t SECOND = 1000000000;

static void check_pause(struct spare_pause *pause, int64_t now_ns, int seconds)
{
    spare_pause_begin(pause, now_ns);
    CHECK(!spare_pause_is_over(pause, now_ns + seconds * SECOND - 1), "over before %d s", seconds);
    CHECK(spare_pause_is_over(pause, now_ns + seconds * SECOND), "longer than %d s", seconds);
}

static void test_doubles(void)
{
    static const int seconds[] = {10, 20, 40, 80, 160, 160, 160};
    struct spare_pause pause = {0};
    int64_t now_ns = SECOND;
    CHECK(spare_pause_is_over(&pause, now_ns), "at first");
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++, now_ns += 3599 * SECOND)
        check_pause(&pause, now_ns, seconds[i]);
}

static void test_good_service(void)
{
    struct spare_pause pause = {0};
    int64_t now_ns = SECOND;
    for (int i = 0; i < 9; i++, now_ns += 200 * SECOND)
        spare_pause_begin(&pause, now_ns);
    check_pause(&pause, now_ns, 160);
    check_pause(&pause, now_ns + 3600 * SECOND, 10);
    check_pause(&pause, now_ns + 3620 * SECOND, 20);
}

static void test_for_good(void)
{
    struct spare_pause pause = {0};
    spare_pause_begin(&pause, SECOND);
    spare_pause_for_good(&pause);
    CHECK(!spare_pause_is_over(&pause, 1000000 * SECOND), "over");
}

int main(void)
{
    TEST(test_doubles());
    TEST(test_good_service());
    TEST(test_for_good());
    return test_end();
}
