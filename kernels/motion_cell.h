// Arithmetic of one cell in motion_step, shared by C, SIMD and CUDA. Everything fits 16-bit lanes
// except products and a cell's sum.
#ifndef FRAMED_KERNELS_MOTION_CELL_H
#define FRAMED_KERNELS_MOTION_CELL_H

#include <stdlib.h>

#include "kernels/motion.h"

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

#endif
