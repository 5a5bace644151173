#include "daemon/camera/capture_time.h"

#include "daemon/wire.h"

// Less is held up until the clock has caught up: a frame period at the first sender report, or a
// camera's clock that is corrected.
static const int64_t BACK_MAX_NS = 10 * INT64_C(1000000000);

bool capture_time_jumps(const struct capture_time *time, const struct frame_info *info)
{
    return time->begun && info->capture_ns < time->last_ns - BACK_MAX_NS;
}

void capture_time_rise(struct capture_time *time, struct frame_info *info)
{
    if (time->begun && time->epoch == info->epoch && info->capture_ns <= time->last_ns) {
        info->capture_ns = time->last_ns + 1;
        info->flags &= ~(uint32_t)FRAMED_FLAG_CAPTURE_CLOCK;
    }
    *time = (struct capture_time){true, info->epoch, info->capture_ns};
}
