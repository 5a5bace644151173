// Buckets, quantiles over the recent window, and rates.
#include "daemon/base/counters.h"

#include <stdlib.h>

#include "tests/test.h"

#define MS INT64_C(1000000)

static void test_buckets(void)
{
    CHECK(latency_bucket(-5) == 0 && latency_bucket(0) == 0, "before 0");
    for (int i = 0; i < LATENCY_BUCKETS - 1; i++) {
        int64_t bound = latency_bound_ns(i);
        CHECK(latency_bucket(bound - 1) <= i && latency_bucket(bound + 1) == i + 1,
              "bucket %d ends at %lld: %d %d", i, (long long)bound, latency_bucket(bound - 1),
              latency_bucket(bound + 1));
    }
    CHECK(latency_bucket(INT64_MAX) == LATENCY_BUCKETS - 1, "%d", latency_bucket(INT64_MAX));
    int ends = 0;
    for (int i = 0; i < LATENCY_BUCKETS; i++)
        ends += latency_bound_ns(i) == MS / 2 || latency_bound_ns(i) == 64 * MS ||
                latency_bound_ns(i) == 4096 * MS;
    CHECK(ends == 3, "powers of two of a millisecond end %d buckets", ends);
    for (int i = 0; i < LATENCY_COARSE; i++) {
        double bound = (double)latency_bound_ns(latency_coarse_bucket(i)) / 1e9;
        CHECK(strtod(latency_coarse_s[i], NULL) == bound, "%s is %g", latency_coarse_s[i], bound);
    }
}

static void check_quantile(const struct latency_window *window, const struct latency *latency,
                           double q, double expected_ms)
{
    double ms = (double)latency_quantile_ns(window, latency, q) / MS;
    CHECK(ms > expected_ms * 0.88 && ms < expected_ms * 1.13, "%g: %g ms and not %g", q, ms,
          expected_ms);
}

static void test_quantiles(void)
{
    static struct latency latency;
    static struct latency_window window;
    CHECK(latency_quantile_ns(&window, &latency, 0.5) == -1, "of nothing");
    for (int i = 1; i <= 1000; i++)
        latency_observe(&latency, i * MS / 10);
    check_quantile(&window, &latency, 0.5, 50);
    check_quantile(&window, &latency, 0.99, 99);
    check_quantile(&window, &latency, 1, 100);
    latency_turn(&window, &latency);
    check_quantile(&window, &latency, 0.5, 50); // still in the window
    for (int i = 0; i < 10; i++)
        latency_observe(&latency, 7 * MS);
    latency_turn(&window, &latency);
    check_quantile(&window, &latency, 0.01, 7);
    check_quantile(&window, &latency, 0.99, 7);
    latency_turn(&window, &latency);
    CHECK(latency_quantile_ns(&window, &latency, 0.5) == -1, "all is long ago");
    CHECK(latency.sum_ns == 500500 * MS / 10 + 70 * MS, "%lld", (long long)latency.sum_ns);
}

static void test_rates(void)
{
    struct rate_counter meter = {0};
    CHECK(rate_counter_rate(&meter) == 0, "of nothing");
    rate_counter_sample(&meter, 100, 1000 * MS);
    CHECK(rate_counter_rate(&meter) == 0, "of one sample");
    rate_counter_sample(&meter, 125, 2000 * MS);
    CHECK(rate_counter_rate(&meter) == 25, "%g", rate_counter_rate(&meter));
    for (int i = 3; i < 9; i++)
        rate_counter_sample(&meter, 125 + 10 * (uint64_t)(i - 2), i * 1000 * MS);
    CHECK(rate_counter_rate(&meter) == 10, "%g after what was before", rate_counter_rate(&meter));
}

int main(void)
{
    TEST(test_buckets());
    TEST(test_quantiles());
    TEST(test_rates());
    return test_end();
}
