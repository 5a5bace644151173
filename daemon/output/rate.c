#include "daemon/output/rate.h"

#include <math.h>

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

static int common_divisor(int a, int b)
{
    while (b > 0) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void rate_limit(const struct rate *rate, int *num, int *den)
{
    static const int MILLION = 1000000; // the limit to six decimals
    if (rate->fps <= 0 || (*den > 0 && (double)*num / *den <= limit_of(rate)))
        return;
    *num = (int)lround(limit_of(rate) * MILLION);
    *den = MILLION;
    int common = common_divisor(*num, *den);
    *num /= common;
    *den /= common;
}

void rate_restart(struct rate *rate)
{
    rate->begun = false;
}
