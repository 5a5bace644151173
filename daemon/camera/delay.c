#include "daemon/camera/delay.h"

#include "daemon/base/bounds.h"

static const int64_t WINDOW_NS = 10 * INT64_C(1000000000);
static const int64_t PAUSE_NS = 1000000000; // that a window counts of a longer one
static const int64_t GAIN_NS = 300000000;   // by which one that catches up does so in a window

static void begin_window(struct delay *delay, int64_t distance)
{
    delay->first_ns = delay->window_ns = distance;
    delay->window_age_ns = 0;
}

// Who is behind and does not catch up for a whole window has another clock, or stopped it: clocks
// drift apart, and a stream that was paused goes on where it was.
static void end_window(struct delay *delay, int64_t distance)
{
    if (delay->first_ns - delay->window_ns <= GAIN_NS)
        delay->least_ns = delay->window_ns;
    begin_window(delay, distance);
}

int64_t delay_read(struct delay *delay, int64_t pts_ns, int64_t came_ns)
{
    int64_t distance = (int64_t)((uint64_t)came_ns - (uint64_t)pts_ns);
    if (!delay->begun) {
        *delay = (struct delay){.begun = true, .least_ns = distance, .came_ns = came_ns};
        begin_window(delay, distance);
    }
    delay->window_age_ns += bounds_min(came_ns - delay->came_ns, PAUSE_NS);
    delay->came_ns = came_ns;
    delay->least_ns = bounds_min(delay->least_ns, distance);
    delay->window_ns = bounds_min(delay->window_ns, distance);
    if (delay->window_age_ns >= WINDOW_NS)
        end_window(delay, distance);
    return distance - delay->least_ns;
}
