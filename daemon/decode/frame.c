#include "daemon/decode/frame.h"

#include "daemon/base/clock.h"

void frame_release(struct frame *frame)
{
    if (frame->release)
        frame->release(frame->owner);
    *frame = (struct frame){0};
}

bool frame_is_late(const struct frame_info *info, int64_t max_age_ns)
{
    int64_t since_ns = info->received_ns, due_ns = info->decoded_ns - info->delay_ns;
    if (info->delay_ns > 0 && due_ns < since_ns)
        since_ns = due_ns;
    return max_age_ns > 0 && monotonic_ns() - since_ns > max_age_ns;
}
