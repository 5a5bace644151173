#include "daemon/camera/delay.h"

#include <string.h>

#include "daemon/base/number.h"

static const int64_t WINDOW_NS = 10 * INT64_C(1000000000);
static const int64_t PAUSE_NS = 1000000000; // most that a pause adds to a window's age
static const int64_t GAIN_NS = 300000000;   // least gain in a window while catching up

static const int64_t BLOCK_NS = 300000000, AGREE_NS = 10000000;
enum {
    BLOCK_PICTURES = 3,
    WAITED_SHARE = 3, // the input keeps up if it waited for 1 picture in 3
};

static void begin_window(struct delay *delay, int64_t distance)
{
    delay->first_ns = delay->window_ns = distance;
    delay->window_age_ns = 0;
}

// A camera that is behind and does not catch up in a whole window has another clock, or stopped it:
// clocks drift apart, and a paused stream resumes where it was.
static void end_window(struct delay *delay, int64_t distance)
{
    if (delay->first_ns - delay->window_ns <= GAIN_NS)
        delay->least_ns = bounds_max(delay->least_ns, delay->window_ns);
    begin_window(delay, distance);
}

// Returns how much the distance grew over all blocks; 0: not steadily.
static int64_t steady_growth(const struct delay *delay)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int i = 1; i < DELAY_BLOCKS; i++) {
        const int64_t growth = delay->leasts[i] - delay->leasts[i - 1];
        least = bounds_min(least, growth);
        most = bounds_max(most, growth);
    }
    const bool steady = delay->n_leasts == DELAY_BLOCKS && least > 0 &&
                        most - least <= bounds_max(AGREE_NS, (least + most) / 8);
    return steady ? delay->leasts[DELAY_BLOCKS - 1] - delay->leasts[0] : 0;
}

// Pictures that are ready when read are late: this machine is too busy.
static void end_block(struct delay *delay)
{
    const bool waited = WAITED_SHARE * delay->waited >= delay->pictures;
    const int64_t before_ns = delay->leasts[DELAY_BLOCKS - 1];
    memmove(delay->leasts, delay->leasts + 1, sizeof delay->leasts - sizeof *delay->leasts);
    delay->leasts[DELAY_BLOCKS - 1] = delay->block_least_ns;
    delay->n_leasts = waited ? (int)bounds_min(delay->n_leasts + 1, DELAY_BLOCKS) : 0;
    const int64_t growth_ns = steady_growth(delay);
    if (growth_ns)
        delay->least_ns += delay->drifts ? delay->block_least_ns - before_ns : growth_ns;
    delay->drifts = growth_ns != 0;
    delay->pictures = delay->waited = 0;
}

static void note_distance(struct delay *delay, int64_t distance, bool waited, int64_t came_ns)
{
    if (delay->pictures == 0) {
        delay->block_ns = came_ns;
        delay->block_least_ns = distance;
    }
    delay->pictures++;
    delay->waited += waited;
    delay->block_least_ns = bounds_min(delay->block_least_ns, distance);
    if (came_ns - delay->block_ns >= BLOCK_NS && delay->pictures >= BLOCK_PICTURES)
        end_block(delay);
}

int64_t delay_read(struct delay *delay, int64_t pts_ns, bool waited, int64_t came_ns)
{
    int64_t distance = (int64_t)((uint64_t)came_ns - (uint64_t)pts_ns);
    if (!delay->begun) {
        *delay = (struct delay){.begun = true, .least_ns = distance, .came_ns = came_ns};
        begin_window(delay, distance);
    }
    delay->window_age_ns += bounds_min(came_ns - delay->came_ns, PAUSE_NS);
    note_distance(delay, distance, waited, came_ns);
    delay->came_ns = came_ns;
    delay->least_ns = bounds_min(delay->least_ns, distance);
    delay->window_ns = bounds_min(delay->window_ns, distance);
    if (delay->window_age_ns >= WINDOW_NS)
        end_window(delay, distance);
    return distance - delay->least_ns;
}
