#include "daemon/frame.h"

#include <time.h>

void frame_release(struct frame *frame)
{
    if (frame->release)
        frame->release(frame->owner);
    *frame = (struct frame){0};
}

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

bool frame_is_late(const struct frame_info *info, int64_t max_age_ns)
{
    int64_t since_ns = info->received_ns, due_ns = info->decoded_ns - info->behind_ns;
    if (info->behind_ns > 0 && due_ns < since_ns)
        since_ns = due_ns;
    return max_age_ns > 0 && monotonic_ns() - since_ns > max_age_ns;
}

int64_t realtime_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}
