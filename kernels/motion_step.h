// The parts of a step of motion that all versions share, for C, SIMD and CUDA.
#ifndef FRAMED_KERNELS_MOTION_STEP_H
#define FRAMED_KERNELS_MOTION_STEP_H

#include <stdlib.h>

#include "kernels/motion.h"

// --- arithmetic of one cell. Everything fits 16-bit lanes except products and a cell's sum.

enum {
    CELL_BLACK = 16 << 7,   // fixed point of a gain
    CELL_WHITE = 255 << 7,  // the largest mean
    CELL_DIM = 24 << 7,     // darkest and
    CELL_BRIGHT = 235 << 7, // brightest background that shows the light
    CELL_FAR = 3 << 7,      // a cell further off is not explained by a light

    GAIN_ONE = 1 << 10,
    GAIN_BITS = 12, // gains are below 4
    GAIN_MIN = GAIN_ONE / 4,
    SHIFT_MIN = -(64 << 7), // 64 levels up or down, in steps of 1/8 level
    SHIFT_STEP = 1 << 4,
    SHIFT_BITS = 10,

    SLOW_THRESHOLD = 6 << 7, // at sensitivity 50
    FAST_THRESHOLD = 4 << 7,
    DIFFERENCE_MAX = 28 << 7, // nine of them fit 16 bits
    NINTH = 7282,             // in 1/65536
    RANGE_SHARE = 12 << 11,   // of the background's range: 12/32
    EDGE_SHARE = 1 << 13,     // of the background above black: 1/8

    NOISE_BITS = 4,            // of Q11 beyond Q7's
    NOISE_MIN = (1 << 11) / 4, // a quarter of a level
    NOISE_MAX = 3 << 11,
    RESIDUAL_LEAST = 3 << 7,      // a residual is noise up to this plus 6 times the noise,
    RESIDUAL_MAX = (16 << 7) - 1, // and never above this

    SHARE_ALL = 65536,              // the share of an average that takes the new value
    SHARE_HALF = SHARE_ALL / 2 - 1, // the largest in 16 bits
};

// (a * b) >> 16, of 16-bit numbers.
static inline FRAMED_HD int mulhi(int a, int b)
{
    return (a * b) >> 16;
}

static inline FRAMED_HD int cell_mean(uint32_t sum, int shift, uint32_t mean_of, int mask)
{
    return mask ? (int)((sum >> shift) * mean_of >> 16) : 0;
}

// Background level in another light. 0, the level of masked cells, stays 0.
static inline FRAMED_HD int cell_lit(int level, struct motion_light light)
{
    const int above = level > CELL_BLACK ? level - CELL_BLACK : 0;
    const int below = level - above;
    if (light.gain != GAIN_ONE)
        level = below + 2 * (int)(2u * (uint32_t)above * ((uint32_t)light.gain * 16) >> 16);
    return level ? clamp_to(level + light.shift, 0, CELL_WHITE) : 0;
}

// True if a background shows the light.
static inline FRAMED_HD bool cell_tells(int level)
{
    return level >= CELL_DIM && level <= CELL_BRIGHT;
}

// Largest difference from a background in unchanged light: about 1/170.
static inline FRAMED_HD int cell_even(int level)
{
    return (level >> 8) + (level >> 9);
}

// Clamped difference of a cell from its background.
static inline FRAMED_HD int cell_difference(int mean, int lit)
{
    return clamp_to(mean - lit, -DIFFERENCE_MAX, DIFFERENCE_MAX);
}

// True if a cell changed. `differences`: sum over the cell and its neighbours; `range`: of the lit
// slow background there; `lit`: the background; `threshold`: of this background.
static inline FRAMED_HD bool cell_changed(const struct motion *m, int differences, int noise,
                                          int threshold, int range, int lit,
                                          struct motion_light light)
{
    const int wanted = threshold + (noise * 5 >> 5);
    int tolerance = mulhi(wanted * 8, m->threshold_scale * 32);
    tolerance = adds16(tolerance, mulhi(range, RANGE_SHARE));
    tolerance = adds16(tolerance, mulhi(lit, abs(light.gain - GAIN_ONE) * 8));
    tolerance = adds16(tolerance, abs(light.shift) >> 3);
    return mulhi(abs(differences), NINTH) > tolerance;
}

// True if a moved cell has an edge. `uneven`: range of the unclamped differences from lit slow over
// the cell and its neighbours.
static inline FRAMED_HD bool cell_edge(int uneven, int range, int lit)
{
    const int above = lit > CELL_BLACK ? lit - CELL_BLACK : 0;
    return uneven > mulhi(above, EDGE_SHARE) + mulhi(range, RANGE_SHARE);
}

// Rounding term of a picture's averages. Over many pictures all values are equally frequent, so
// that averages lose nothing by rounding: it is the picture's number with its 16 bits reversed.
static inline FRAMED_HD int step_rounding(uint32_t steps)
{
    uint32_t v = steps & 0xffff;
    v = (v >> 8 | v << 8) & 0xffff;
    v = (v >> 4 & 0x0f0f) | (v & 0x0f0f) << 4;
    v = (v >> 2 & 0x3333) | (v & 0x3333) << 2;
    return (int)((v >> 1 & 0x5555) | (v & 0x5555) << 1);
}

// Moves an average towards `target`.
static inline FRAMED_HD int cell_average(int average, int target, int share, int rounding)
{
    if (share == SHARE_ALL)
        return target;
    return average + ((((target - average) * share) + rounding) >> 16);
}

// Noise after a picture with `residual` from the lit fast background.
static inline FRAMED_HD int cell_noise(const struct motion *m, int noise, int residual,
                                       int rounding)
{
    const int limit = RESIDUAL_LEAST + (noise * 6 >> NOISE_BITS);
    const int capped = residual < limit ? residual : limit;
    const int target = (capped < RESIDUAL_MAX ? capped : RESIDUAL_MAX) << NOISE_BITS;
    const int share = target > noise ? m->noise_up_share : m->noise_down_share;
    return clamp_to(cell_average(noise, target, share, rounding), NOISE_MIN, NOISE_MAX);
}

// --- the additional memory for a step on a CPU

enum { MOTION_LINES = 4 };

struct motion_workspace {
    // planes of motion.stride * motion.rows
    uint16_t *mean;
    uint16_t *slow, *fast; // in the present light
    uint16_t *change;      // CHANGE_*
    // rows of motion.stride, with MOTION_LANES more before and after
    int16_t *line[MOTION_LINES];
    size_t bytes; // of all
};

enum { CHANGE_SLOW = 1, CHANGE_FAST = 2, CHANGE_BOTH = 3, CHANGE_EDGE = 4 };

// Places the parts from `base` on; NULL computes `bytes` alone.
struct motion_workspace motion_workspace_at(const struct motion *, void *base);

// --- the light, and the state from step to step

// Cells changed relative to fast, and to both.
struct motion_counts {
    int fast, both;
};

// Counts cells of a plane of means by their relation to a background in that light. Only
// backgrounds that show the light count.
typedef int motion_cells_fn(const struct motion *, const uint16_t *mean, const uint16_t *ref,
                            struct motion_light);

// Returns the median gain or the median shift, whichever leaves fewer cells far away. `above`
// counts cells above their background; `far`: cells that the light does not explain; `tell`: number
// of cells that show the light.
static inline struct motion_light motion_light_median(const struct motion *m, const uint16_t *mean,
                                                      const uint16_t *ref, int tell,
                                                      motion_cells_fn *above, motion_cells_fn *far)
{
    struct motion_light gain = {GAIN_MIN, 0}, shift = {GAIN_ONE, SHIFT_MIN};
    for (int step = 1 << (GAIN_BITS - 1); step > 0; step /= 2) {
        const struct motion_light at = {gain.gain + step - 1, 0};
        if (gain.gain + step < 1 << GAIN_BITS && 2 * above(m, mean, ref, at) > tell)
            gain.gain += step;
    }
    for (int step = SHIFT_STEP << (SHIFT_BITS - 1); step >= SHIFT_STEP; step /= 2) {
        const struct motion_light at = {GAIN_ONE, shift.shift + step - SHIFT_STEP};
        if (2 * above(m, mean, ref, at) > tell)
            shift.shift += step;
    }
    return far(m, mean, ref, shift) < far(m, mean, ref, gain) ? shift : gain;
}

struct motion_step {
    bool settling; // learning or during a jump: no cell is listed, and all are averaged
    bool jump;
    int slow_share, fast_share; // slow_share: of cells that neither move nor are absorbed
    int rounding;
};

// Detects a jump of the light, counts the picture in the state, and sets the flags.
static inline FRAMED_HD struct motion_step motion_step_of(const struct motion *m,
                                                          struct motion_state *state,
                                                          struct motion_counts counts,
                                                          struct motion_changes *changes)
{
    const uint32_t steps = state->steps;
    const uint32_t before = steps < (uint32_t)m->jump_window ? steps : (uint32_t)m->jump_window;
    int least = m->live;
    for (uint32_t i = 1; i <= before; i++) {
        const int then = (int)state->changed[(steps - i) % MOTION_HISTORY];
        least = then < least ? then : least;
    }
    const bool learning = steps < (uint32_t)m->learn_for;
    if (!learning && (2 * counts.both > m->live || 5 * (counts.fast - least) > m->live))
        state->quiet = (uint32_t)m->quiet_after;
    const bool jump = state->quiet > 0;
    const bool same = changes->slow.gain == GAIN_ONE && changes->slow.shift == 0 &&
                      changes->fast.gain == GAIN_ONE && changes->fast.shift == 0;
    changes->flags = (learning ? MOTION_LEARNING : 0) | (jump ? MOTION_JUMP | MOTION_LIGHT : 0) |
                     (same || steps == 0 ? 0 : MOTION_LIGHT);
    struct motion_step step = {learning || jump, jump, m->slow_share, m->fast_share,
                               step_rounding(steps)};
    if (learning)
        step.slow_share = steps < 2 ? SHARE_HALF : SHARE_ALL / (int)(steps + 1);
    if (jump)
        step.slow_share = SHARE_HALF;
    if (steps == 0)
        step.slow_share = SHARE_ALL;
    if (steps == 0 || jump)
        step.fast_share = SHARE_ALL;
    state->changed[steps % MOTION_HISTORY] = (uint32_t)counts.fast;
    state->quiet -= jump;
    state->steps = steps < UINT32_MAX ? steps + 1 : steps;
    return step;
}

#endif
