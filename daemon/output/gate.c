#include "daemon/output/gate.h"

#include <libavutil/rational.h>
#include <limits.h>
#include <math.h>

#include "daemon/wire.h"

// Timestamps of another epoch cannot be compared, and another size shows another scene.
static void follow_stream(struct gate *gate, const struct frame_info *info)
{
    if (gate->epoch == info->epoch && gate->width == info->source_width &&
        gate->height == info->source_height)
        return;
    *gate = (struct gate){
        .epoch = info->epoch,
        .width = info->source_width,
        .height = info->source_height,
    };
}

// Returns true if motion holds the gate open, or if it is time for a picture.
static bool is_open(const struct gate *gate, const struct gate_config *config, int64_t pts_ns)
{
    return (gate->moved && pts_ns - gate->moved_ns <= config->hold.ns) ||
           (config->every.ns > 0 && pts_ns - gate->passed_ns >= config->every.ns);
}

bool gate_opens(struct gate *gate, const struct gate_config *config, const struct frame_info *info)
{
    const struct scene_facts *scene = &info->scene;
    if (!config->motion)
        return true;
    follow_stream(gate, info);
    if (info->flags & FRAMED_FLAG_DAMAGED)
        return gate->begun && is_open(gate, config, info->pts_ns);
    if (!scene->known)
        return true;
    if (scene->moving) {
        gate->moved = true;
        gate->moved_ns = info->pts_ns;
    }
    return !gate->begun || is_open(gate, config, info->pts_ns);
}

void gate_passed(struct gate *gate, const struct frame_info *info)
{
    gate->begun = true;
    gate->passed_ns = info->pts_ns;
}

// --- frames per second

static const double FPS_MIN = 1e-6; // keeps intervals far from overflow

static double limit_of(const struct rate *rate)
{
    return rate->fps > FPS_MIN ? rate->fps : FPS_MIN;
}

// Accepts frames an eighth of the interval early, as timestamps are rounded. The due time moves by
// whole intervals, so that 25 frames/s thin to 10 evenly; after a gap it restarts at the frame.
bool rate_keeps(struct rate *rate, int64_t pts_ns)
{
    if (rate->fps <= 0)
        return true;
    int64_t interval = (int64_t)(1e9 / limit_of(rate));
    if (rate->begun && pts_ns < rate->due_ns - interval / 8)
        return false;
    if (!rate->begun || rate->due_ns + interval <= pts_ns)
        rate->due_ns = pts_ns;
    rate->begun = true;
    rate->due_ns += interval;
    return true;
}

void rate_limit(const struct rate *rate, int *num, int *den)
{
    static const int MILLION = 1000000; // the limit to six decimals
    if (rate->fps <= 0 || (*den > 0 && (double)*num / *den <= limit_of(rate)))
        return;
    av_reduce(num, den, lround(limit_of(rate) * MILLION), MILLION, INT_MAX);
}

void rate_restart(struct rate *rate)
{
    rate->begun = false;
}
