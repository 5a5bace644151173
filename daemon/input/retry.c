#include "daemon/input/retry.h"

static const int seconds[] = {1, 1, 2, 5, 10, 30};
enum { STEPS = sizeof seconds / sizeof seconds[0], REFUSED_SECONDS = 30 };

void retry_reset(struct retry *backoff)
{
    backoff->failures = backoff->refusals = 0;
}

// Factor 0.8 to 1.2, by a linear congruential step: chance enough to spread cameras.
static int64_t jitter(struct retry *backoff, int64_t ns)
{
    backoff->seed = backoff->seed * 1664525u + 1013904223u;
    return ns * 4 / 5 + ns * 2 / 5 * (backoff->seed >> 16) / 65536;
}

int64_t retry_next_ns(struct retry *backoff, bool refused)
{
    int step = backoff->failures < STEPS ? backoff->failures : STEPS - 1;
    backoff->failures++;
    backoff->refusals = refused ? backoff->refusals + 1 : 0;
    // A second refusal is no accident, and cameras lock accounts that knock too often.
    if (backoff->refusals >= 2)
        return (int64_t)REFUSED_SECONDS * 1000000000 + jitter(backoff, 1000000000);
    return jitter(backoff, (int64_t)seconds[step] * 1000000000);
}
