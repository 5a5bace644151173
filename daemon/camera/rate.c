#include "daemon/camera/rate.h"

static const double FPS_MIN = 1e-6; // keeps intervals far from overflow

// An eighth of the interval is forgiven, as timestamps come rounded. The due time moves by whole
// intervals, so that 25 frames/s thin to 10 evenly; after a gap it starts from the frame.
bool rate_keeps(struct rate *rate, int64_t pts_ns)
{
    if (rate->fps <= 0)
        return true;
    int64_t interval = (int64_t)(1e9 / (rate->fps > FPS_MIN ? rate->fps : FPS_MIN));
    if (rate->begun && pts_ns < rate->due_ns - interval / 8)
        return false;
    if (!rate->begun || rate->due_ns + interval <= pts_ns)
        rate->due_ns = pts_ns;
    rate->begun = true;
    rate->due_ns += interval;
    return true;
}

void rate_restart(struct rate *rate)
{
    rate->begun = false;
}
