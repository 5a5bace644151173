// The waits between tries: the steps, their jitter, the reset and the slow knocking after a
// refusal.
#include "daemon/camera/backoff.h"
#include "tests/test.h"

static bool within(int64_t ns, double seconds)
{
    return ns >= (int64_t)(seconds * 0.8e9) && ns <= (int64_t)(seconds * 1.2e9);
}

int main(void)
{
    static const double steps[] = {1, 1, 2, 5, 10, 30, 30, 30};
    for (uint32_t seed = 0; seed < 1000; seed++) {
        struct backoff backoff = {.seed = seed};
        for (int i = 0; i < 8; i++) {
            int64_t ns = backoff_next_ns(&backoff, false);
            CHECK(within(ns, steps[i]), "seed %u step %d: %.3f s", seed, i, (double)ns / 1e9);
        }
        backoff_reset(&backoff);
        CHECK(within(backoff_next_ns(&backoff, false), 1), "after a reset");
    }

    struct backoff refused = {.seed = 7};
    CHECK(within(backoff_next_ns(&refused, true), 1), "the first refusal may be an accident");
    for (int i = 0; i < 3; i++)
        CHECK(backoff_next_ns(&refused, true) >= 30000000000, "the second knocks slowly");
    CHECK(within(backoff_next_ns(&refused, false), 10), "another failure goes by its step");

    struct backoff a = {.seed = 1}, b = {.seed = 2};
    CHECK(backoff_next_ns(&a, false) != backoff_next_ns(&b, false), "cameras spread");
    return test_end("backoff");
}
