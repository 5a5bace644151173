// Waits between attempts: their steps, number, jitter and reset, and the slow attempts after a
// refusal.
#include "daemon/base/retry.h"
#include "tests/test.h"

static bool within(int64_t ns, double seconds)
{
    return ns >= (int64_t)(seconds * 0.8e9) && ns <= (int64_t)(seconds * 1.2e9);
}

int main(void)
{
    static const double steps[] = {1,   1, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5,
                                   1.5, 5, 10,  20,  30,  45,  45,  45};
    enum { STEPS = sizeof steps / sizeof steps[0] };
    for (uint32_t seed = 0; seed < 1000; seed++) {
        struct retry retry = {.seed = seed};
        for (int i = 0; i < STEPS; i++) {
            int64_t ns = retry_next_ns(&retry, false);
            CHECK(within(ns, steps[i]), "seed %u step %d: %.3f s", seed, i, (double)ns / 1e9);
        }
        retry_reset(&retry);
        CHECK(within(retry_next_ns(&retry, false), 1), "after a reset");
    }

    struct retry refused = {.seed = 7};
    CHECK(within(retry_next_ns(&refused, true), 1), "the first refusal may be an accident");
    for (int i = 0; i < 3; i++)
        CHECK(retry_next_ns(&refused, true) >= 30000000000, "the second knocks slowly");
    CHECK(within(retry_next_ns(&refused, false), 1.5), "another failure goes by its step");

    // The schedule before was 1 1 2 5 10 30 30 ... s: 24 attempts in the first 10 minutes of an
    // outage, and 20 in each later 10 minutes.
    double first = 0, later = 0;
    for (uint32_t seed = 0; seed < 1000; seed++) {
        struct retry retry = {.seed = seed * 2654435761u};
        int64_t ns = 0;
        while ((ns += retry_next_ns(&retry, false)) <= 1200000000000)
            *(ns <= 600000000000 ? &first : &later) += 1;
    }
    CHECK(first / 1000 <= 24.2 && later / 1000 <= 14, "%.1f and %.1f tries", first / 1000,
          later / 1000);

    struct retry a = {.seed = 1}, b = {.seed = 2};
    CHECK(retry_next_ns(&a, false) != retry_next_ns(&b, false), "cameras spread");
    return test_end();
}
