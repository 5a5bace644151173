// A limit of frames per second with timestamps that jitter, pause, jump and are extremely large.
#include "daemon/output/gate.h"
#include "tests/test.h"

static const int64_t MS = 1000000;

// Returns how many of `n` frames, `step` apart and alternately up to `jitter` late, a limit keeps.
static int kept(double fps, int n, int64_t step, int64_t jitter)
{
    struct rate rate = {.fps = fps};
    int count = 0;
    for (int i = 0; i < n; i++)
        count += rate_keeps(&rate, i * step + i % 3 * jitter);
    return count;
}

static bool limits(double fps, int num, int den, int to_num, int to_den)
{
    const struct rate rate = {.fps = fps};
    rate_limit(&rate, &num, &den);
    return num == to_num && den == to_den;
}

static void test_nominal_rate(void)
{
    CHECK(limits(0, 30000, 1001, 30000, 1001), "no limit");
    CHECK(limits(60, 25, 1, 25, 1) && limits(25, 25, 1, 25, 1), "a limit that thins nothing");
    CHECK(limits(5, 25, 1, 5, 1) && limits(7.5, 25, 1, 15, 2), "thinned");
    CHECK(limits(29.97, 30, 1, 2997, 100) && limits(1000, 2000, 1, 1000, 1), "as it is written");
    CHECK(limits(5, 0, 0, 5, 1) && limits(0, 0, 0, 0, 0), "of an unknown rate");
    CHECK(limits(1e-300, 25, 1, 1, 1000000), "next to never");
}

int main(void)
{
    TEST(test_nominal_rate());
    CHECK(kept(0, 100, 40 * MS, 0) == 100, "0 keeps all");
    CHECK(kept(25, 100, 40 * MS, 2 * MS) == 100, "the rate itself keeps all, with jitter");
    CHECK(kept(10, 250, 40 * MS, 0) == 100, "25 to 10: %d", kept(10, 250, 40 * MS, 0));
    CHECK(kept(5, 250, 40 * MS, 2 * MS) == 50, "25 to 5: %d", kept(5, 250, 40 * MS, 2 * MS));
    CHECK(kept(1e-300, 100, 40 * MS, 0) == 1, "next to never");

    struct rate rate = {.fps = 10};
    CHECK(rate_keeps(&rate, 0) && !rate_keeps(&rate, 40 * MS), "the first, not the second");
    CHECK(rate_keeps(&rate, 10000 * MS), "after a pause");
    CHECK(!rate_keeps(&rate, 10040 * MS), "a pause is not made up for");
    CHECK(!rate_keeps(&rate, 0), "time that goes back");
    rate_restart(&rate);
    CHECK(rate_keeps(&rate, 0), "is a new beginning only where it is said");
    return test_end();
}
