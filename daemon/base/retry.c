#include "daemon/base/retry.h"

static const int milliseconds[] = {1000, 1000, 1500, 1500,  1500,  1500,  1500,
                                   1500, 1500, 5000, 10000, 20000, 30000, 45000};
enum { STEPS = sizeof milliseconds / sizeof milliseconds[0], REFUSED_SECONDS = 30 };

void retry_reset(struct retry *retry)
{
    retry->failures = retry->refusals = 0;
}

// Varies by a factor of 0.8 to 1.2, by a linear congruential step: random enough to spread cameras.
static int64_t jitter(struct retry *retry, int64_t ns)
{
    retry->seed = retry->seed * 1664525u + 1013904223u;
    return ns * 4 / 5 + ns * 2 / 5 * (retry->seed >> 16) / 65536;
}

int64_t retry_next_ns(struct retry *retry, bool refused)
{
    int step = retry->failures < STEPS ? retry->failures : STEPS - 1;
    retry->failures++;
    retry->refusals = refused ? retry->refusals + 1 : 0;
    // A second refusal is no accident, and cameras lock accounts after too many tries.
    if (retry->refusals >= 2)
        return (int64_t)REFUSED_SECONDS * 1000000000 + jitter(retry, 1000000000);
    return jitter(retry, (int64_t)milliseconds[step] * 1000000);
}
