#include "daemon/rtsp/rtp_clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/number.h"

static const int64_t MS = 1000000, SECOND = 1000 * MS;
// Limits ahead of the arrival, and back by reordering. A timestamp beyond them is an outlier, or
// the camera has set its clock.
static const int64_t AHEAD_NS = 1000 * MS, BACK_NS = 700 * MS;
static const int64_t BLOCK_NS = 400 * MS, AT_ONCE_NS = 2 * MS;
static const int64_t LATE_NS = 500 * MS; // a picture may be later than the previous one by this
static const int64_t GROWTH_MIN_NS = 30 * MS; // of the distance over a span: more than jitter
static const double NOMINAL = 0.004; // a rate this near to the SDP's or RFC 6184's is that one
static const double RATE_MAX = 1e9;
enum {
    COMMON_RATE = 90000,
    STEPS = 16,
    BLOCK_PICTURES = 3,
    WAITED_SHARE = 3, // a block needs 1/3 of its pictures read as they arrive
    BURST = 2,        // times as fast as at either rate
    REORDERED = 6,    // a picture may be reordered by so many intervals
    SPANS = 3,        // whose growth must agree: 12 s, longer than a box or camera stays too busy
    SPAN = RTP_CLOCK_BLOCKS / SPANS, // blocks
};

void rtp_clock_open(struct rtp_clock *c, int rate)
{
    const int announced = rate > 0 ? rate : COMMON_RATE;
    *c = (struct rtp_clock){.rate = announced, .announced = announced};
}

int rtp_clock_rate(const struct rtp_clock *c)
{
    return (int)lround(c->rate);
}

static void drop_block(struct rtp_clock *c)
{
    c->block_pictures = c->block_waited = 0;
}

void rtp_clock_restart(struct rtp_clock *c)
{
    c->begun = c->doubted = c->last_guessed = false;
    c->pictures = 0;
    c->last_ns = 0;
}

static int64_t time_of(const struct rtp_clock *c, int64_t ticks)
{
    const int64_t since = ticks - c->base_ticks, rate = rtp_clock_rate(c);
    return c->base_ns + since / rate * SECOND + since % rate * SECOND / rate;
}

static void begin_clock(struct rtp_clock *c, int64_t ticks, int64_t ns)
{
    c->base_ticks = ticks;
    c->base_ns = ns;
    c->n_blocks = 0;
    drop_block(c);
}

static int64_t unwrap(struct rtp_clock *c, uint32_t timestamp)
{
    if (!c->begun) {
        c->ticks = timestamp;
        begin_clock(c, timestamp, 0);
    }
    c->begun = true;
    return c->ticks + (int32_t)(timestamp - (uint32_t)c->ticks);
}

int64_t rtp_clock_convert(struct rtp_clock *c, uint32_t timestamp)
{
    const int64_t ticks = unwrap(c, timestamp);
    return time_of(c, ticks) - c->moved_ns;
}

// Changes the rate after `ticks`, which keeps its time.
static void change_rate(struct rtp_clock *c, double rate, int64_t ticks)
{
    begin_clock(c, ticks, time_of(c, ticks));
    c->rate = rate;
}

// --- the rate

// Prefers the SDP's or RFC 6184's rate to a measured one close to it.
static double named_rate(const struct rtp_clock *c, double measured)
{
    if (fabs(measured - c->announced) <= NOMINAL * c->announced)
        return c->announced;
    if (fabs(measured - COMMON_RATE) <= NOMINAL * COMMON_RATE)
        return COMMON_RATE;
    return measured;
}

static bool is_undecided(const struct rtp_clock *c)
{
    return c->announced != COMMON_RATE && c->steps < STEPS;
}

// Chooses the announced rate or 90000 ticks/s by the first pictures outside a burst: some devices
// announce another rate, but their timestamps run at 90000 ticks/s.
static void choose_rate(struct rtp_clock *c, int64_t ticks, int64_t since_ns, bool waited)
{
    if (!is_undecided(c) || !waited || !c->waited || since_ns < AT_ONCE_NS)
        return;
    if (c->steps++ == 0)
        c->step_ticks = c->step_ns = 0;
    c->step_ticks += ticks;
    c->step_ns += since_ns;
    const double measured = (double)c->step_ticks * 1e9 / (double)c->step_ns;
    if (measured > BURST * bounds_max(c->announced, COMMON_RATE))
        c->steps = 0;
    if (measured <= 0 || c->steps == 0)
        return;
    const bool common = fabs(log(measured / COMMON_RATE)) < fabs(log(measured / c->announced));
    const double rate = common ? COMMON_RATE : c->announced;
    if (rate != c->rate)
        change_rate(c, rate, c->ticks);
}

// Returns the growth of the distance over SPANS spans; 0 if it is small or differs between them.
static int64_t steady_growth(const struct rtp_clock *c, int64_t *took_ns)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    if (c->n_blocks < RTP_CLOCK_BLOCKS)
        return 0;
    for (int i = 0; i < SPANS * SPAN; i += SPAN) {
        const int64_t growth = c->blocks[i + SPAN].least_ns - c->blocks[i].least_ns;
        least = bounds_min(least, growth);
        most = bounds_max(most, growth);
    }
    *took_ns = c->blocks[SPANS * SPAN].arrived_ns - c->blocks[0].arrived_ns;
    const int64_t sum = c->blocks[SPANS * SPAN].least_ns - c->blocks[0].least_ns;
    const int64_t mean = sum / SPANS;
    const bool agree = most - least <= bounds_max(GROWTH_MIN_NS / 3, llabs(mean) / 4);
    return agree && llabs(mean) >= GROWTH_MIN_NS ? sum : 0;
}

// Changes the rate for a shrinking distance only if no picture was nearer before: otherwise a late
// stream is catching up.
static void measure_rate(struct rtp_clock *c, int64_t ticks)
{
    int64_t took_ns;
    const int64_t growth_ns = steady_growth(c, &took_ns);
    const bool is_nearest = c->blocks[c->n_blocks - 1].least_ns < c->nearest_ns;
    if (!growth_ns || (growth_ns < 0 && !is_nearest))
        return;
    const double rate = named_rate(c, c->rate * (1 - (double)growth_ns / (double)took_ns));
    if (rate != c->rate && rate >= 1 && rate <= RATE_MAX)
        change_rate(c, rate, ticks);
}

static void end_block(struct rtp_clock *c, int64_t arrived_ns)
{
    c->nearest_ns = c->n_blocks == 0
                        ? INT64_MAX
                        : bounds_min(c->nearest_ns, c->blocks[c->n_blocks - 1].least_ns);
    if (c->n_blocks == RTP_CLOCK_BLOCKS)
        memmove(c->blocks, c->blocks + 1, sizeof *c->blocks * --c->n_blocks);
    c->blocks[c->n_blocks].least_ns = c->block_least_ns;
    c->blocks[c->n_blocks++].arrived_ns = arrived_ns;
    drop_block(c);
}

static void compare_with_arrival(struct rtp_clock *c, int64_t ticks, int64_t arrived_ns,
                                 bool waited)
{
    const int64_t distance_ns = arrived_ns - time_of(c, ticks);
    if (c->block_pictures == 0) {
        c->block_ns = arrived_ns;
        c->block_least_ns = distance_ns;
    }
    c->block_least_ns = bounds_min(c->block_least_ns, distance_ns);
    c->block_pictures++;
    c->block_waited += waited;
    if (arrived_ns - c->block_ns < BLOCK_NS || c->block_pictures < BLOCK_PICTURES)
        return;
    if (WAITED_SHARE * c->block_waited < c->block_pictures) {
        drop_block(c);
        return;
    }
    end_block(c, arrived_ns);
    measure_rate(c, ticks);
}

// --- a picture

static struct rtp_time give_time(struct rtp_clock *c, int64_t ns, bool guessed)
{
    c->last_ns = ns;
    c->last_guessed = guessed;
    return (struct rtp_time){.ns = ns, .guessed = guessed};
}

// Guesses a time from the arrival, after the last good timestamp and earlier guesses.
static int64_t guess_time(const struct rtp_clock *c, int64_t arrived_ns)
{
    const int64_t ns = time_of(c, c->ticks) + bounds_max(arrived_ns - c->arrived_ns, 0);
    return bounds_max(ns, c->last_ns + 1);
}

// Guesses an outlier's time: whole intervals after the last good timestamp, one if the picture may
// only be late.
static int64_t guess_step(const struct rtp_clock *c, int64_t arrived_ns)
{
    const int64_t interval_ns = c->step_least_ns, passed_ns = arrived_ns - c->arrived_ns;
    if (interval_ns == 0)
        return guess_time(c, arrived_ns);
    const int64_t steps =
        passed_ns < interval_ns + LATE_NS ? 1 : (passed_ns + interval_ns / 2) / interval_ns;
    return bounds_max(time_of(c, c->ticks) + steps * interval_ns, c->last_ns + 1);
}

static bool fits(const struct rtp_clock *c, int64_t since_ns, int64_t passed_ns)
{
    const int64_t reordered_ns = REORDERED * c->interval_ns;
    return since_ns - passed_ns <= bounds_max(AHEAD_NS, reordered_ns) &&
           since_ns >= -bounds_max(BACK_NS, reordered_ns);
}

// Returns true if the timestamp continues the doubted one: the camera's clock was set, or the
// earlier timestamps were the outliers.
static bool confirms_doubt(const struct rtp_clock *c, uint32_t timestamp, int64_t arrived_ns)
{
    const int32_t since = (int32_t)(timestamp - (uint32_t)c->doubted_ticks);
    const int64_t since_ns = (int64_t)((double)since / c->rate * 1e9);
    return c->doubted && since != 0 && fits(c, since_ns, arrived_ns - c->doubted_ns);
}

static void note_interval(struct rtp_clock *c, int64_t ns)
{
    const bool first = c->pictures < 2;
    c->interval_ns += (ns - c->interval_ns) / (first ? 1 : 8);
    c->step_least_ns = first ? ns : bounds_min(ns, c->step_least_ns + c->step_least_ns / 16 + 1);
}

struct rtp_time rtp_clock_read(struct rtp_clock *c, uint32_t timestamp, int64_t arrived_ns,
                               bool waited)
{
    const int64_t ticks = unwrap(c, timestamp);
    const bool first = c->pictures == 0;
    const int64_t passed_ns = first ? 0 : arrived_ns - c->arrived_ns;
    const int64_t since_ns = first ? 0 : time_of(c, ticks) - time_of(c, c->ticks);
    const int64_t common_ns = first ? 0 : (ticks - c->ticks) * SECOND / COMMON_RATE;
    if (!first && ticks == c->ticks)
        return give_time(c, guess_time(c, arrived_ns), true);
    if (!fits(c, since_ns, passed_ns) && !(is_undecided(c) && fits(c, common_ns, passed_ns))) {
        if (!confirms_doubt(c, timestamp, arrived_ns)) {
            c->doubted = true;
            c->doubted_ticks = timestamp;
            c->doubted_ns = arrived_ns;
            return give_time(c, guess_step(c, arrived_ns), true);
        }
        const int64_t ns = c->pictures < 2 ? guess_time(c, arrived_ns) : time_of(c, ticks);
        c->moved_ns += ns - time_of(c, ticks);
        begin_clock(c, ticks, ns);
        c->last_guessed = false;
    } else if (!first) {
        choose_rate(c, ticks - c->ticks, passed_ns, waited);
        note_interval(c, llabs(since_ns));
    }
    c->doubted = false;
    c->pictures += c->pictures < 2;
    c->ticks = ticks;
    c->arrived_ns = arrived_ns;
    c->waited = waited;
    compare_with_arrival(c, ticks, arrived_ns, waited);
    // A picture that is shown before the previous one keeps its time.
    const bool behind_guess = c->last_guessed && since_ns > 0 && time_of(c, ticks) <= c->last_ns;
    return give_time(c, behind_guess ? c->last_ns + 1 : time_of(c, ticks), behind_guess);
}
