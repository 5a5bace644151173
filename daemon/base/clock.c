#include "daemon/base/clock.h"

#include <time.h>

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t realtime_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

int64_t boottime_ns(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}
