#include "daemon/camera/delay.h"

static const int64_t WINDOW_NS = 10 * INT64_C(1000000000);
static const int64_t PAUSE_NS = 1000000000; // that a window counts of a longer one
static const int64_t GAIN_NS = 300000000;   // by which one that catches up does so in a window

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void begin_window(struct delay *lag, int64_t distance)
{
    lag->first_ns = lag->window_ns = distance;
    lag->window_age_ns = 0;
}

// Who is behind and does not catch up for a whole window has another clock, or stopped it: clocks
// drift apart, and a stream that was paused goes on where it was.
static void end_window(struct delay *lag, int64_t distance)
{
    if (lag->first_ns - lag->window_ns <= GAIN_NS)
        lag->least_ns = lag->window_ns;
    begin_window(lag, distance);
}

int64_t delay_read(struct delay *lag, int64_t pts_ns, int64_t came_ns)
{
    int64_t distance = (int64_t)((uint64_t)came_ns - (uint64_t)pts_ns);
    if (!lag->begun) {
        *lag = (struct delay){.begun = true, .least_ns = distance, .came_ns = came_ns};
        begin_window(lag, distance);
    }
    lag->window_age_ns += least(came_ns - lag->came_ns, PAUSE_NS);
    lag->came_ns = came_ns;
    lag->least_ns = least(lag->least_ns, distance);
    lag->window_ns = least(lag->window_ns, distance);
    if (lag->window_age_ns >= WINDOW_NS)
        end_window(lag, distance);
    return distance - lag->least_ns;
}
