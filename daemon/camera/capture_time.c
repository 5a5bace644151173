#include "daemon/camera/capture_time.h"

#include "daemon/wire.h"

// Smaller steps back are held until the clock catches up: a frame period at the first sender
// report, or a correction of the camera's clock.
static const int64_t BACK_MAX_NS = 10 * INT64_C(1000000000);
// A camera's clock drifts by less between two reports.
static const int64_t STEP_NS = INT64_C(500000000);
// Cameras send a report about every 5 s. One that set its clock too is trusted after this time.
static const int64_t DOUBT_NS = 30 * INT64_C(1000000000);

void capture_time_doubt(struct capture_time *time, const struct frame_info *info)
{
    time->doubted_until_ns = info->received_ns + DOUBT_NS;
}

// Continues from the last picture by the time of arrival while the report's time is far off.
static void replace_doubted(struct capture_time *time, struct frame_info *info)
{
    const int64_t expected_ns = time->last_ns + (info->received_ns - time->last_received_ns);
    const int64_t off_ns = info->capture_ns - expected_ns;
    if (info->received_ns >= time->doubted_until_ns || (off_ns <= STEP_NS && off_ns >= -STEP_NS)) {
        time->doubted_until_ns = 0;
        return;
    }
    info->capture_ns = expected_ns;
    info->flags &= ~(uint32_t)FRAMED_FLAG_CAPTURE_CLOCK;
}

bool capture_time_jumps(const struct capture_time *time, const struct frame_info *info)
{
    if (!time->begun || time->doubted_until_ns)
        return false;
    const int64_t since_ns = info->capture_ns - time->last_ns;
    const int64_t step_ns = since_ns - (info->pts_ns - time->last_pts_ns);
    const bool by_clock = time->by_clock && (info->flags & FRAMED_FLAG_CAPTURE_CLOCK);
    return since_ns < -BACK_MAX_NS || (by_clock && (step_ns > STEP_NS || step_ns < -STEP_NS));
}

void capture_time_rise(struct capture_time *time, struct frame_info *info)
{
    if (time->begun && time->doubted_until_ns)
        replace_doubted(time, info);
    if (time->begun && time->epoch == info->epoch && info->capture_ns <= time->last_ns) {
        info->capture_ns = time->last_ns + 1;
        info->flags &= ~(uint32_t)FRAMED_FLAG_CAPTURE_CLOCK;
    }
    time->begun = true;
    time->epoch = info->epoch;
    time->last_ns = info->capture_ns;
    time->last_pts_ns = info->pts_ns;
    time->by_clock = info->flags & FRAMED_FLAG_CAPTURE_CLOCK;
    time->last_received_ns = info->received_ns;
}
