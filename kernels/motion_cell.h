// The arithmetic of one cell in motion_step: what C, SIMD and CUDA share. All of it fits 16-bit
// lanes but for products and a cell's sum.
#ifndef FRAMED_KERNELS_MOTION_CELL_H
#define FRAMED_KERNELS_MOTION_CELL_H

#include <stdlib.h>

#include "kernels/motion.h"

enum {
    CELL_BLACK = 16 << 7,   // what a gain leaves as it is
    CELL_WHITE = 255 << 7,  // the largest mean
    CELL_DIM = 24 << 7,     // darker backgrounds say nothing of the light,
    CELL_BRIGHT = 235 << 7, // nor do brighter ones
    CELL_FAR = 3 << 7,      // a light model does not explain a cell that is further off

    GAIN_ONE = 1 << 10,
    GAIN_BITS = 12, // gains are below 4
    GAIN_MIN = GAIN_ONE / 4,
    SHIFT_MIN = -(64 << 7), // 64 levels either way, in steps of 1/8 level
    SHIFT_STEP = 1 << 4,
    SHIFT_BITS = 10,

    SLOW_THRESHOLD = 6 << 7, // at sensitivity 50
    FAST_THRESHOLD = 4 << 7,
    DIFFERENCE_MAX = 28 << 7, // nine of them fit 16 bits
    NINTH = 7282,             // of 65536
    RANGE_SHARE = 12 << 11,   // of the background's range: 12/32
    EDGE_SHARE = 1 << 13,     // of the background above black: 1/8

    NOISE_BITS = 4,            // of Q11 beyond Q7
    NOISE_MIN = (1 << 11) / 4, // a quarter of a level
    NOISE_MAX = 3 << 11,
    RESIDUAL_LEAST = 3 << 7, // what a cell may be off by and be noise, and noise 6 times that more,
    RESIDUAL_MAX = (16 << 7) - 1, // but no more

    SHARE_ALL = 65536,              // of an average: takes the new value
    SHARE_HALF = SHARE_ALL / 2 - 1, // the largest in 16 bits
};

// (a * b) >> 16, of 16-bit numbers.
static inline FRAMED_HD int mulhi(int a, int b)
{
    return (a * b) >> 16;
}

// A cell's mean from its sum.
static inline FRAMED_HD int cell_mean(uint32_t sum, int shift, uint32_t mean_of, int mask)
{
    return mask ? (int)((sum >> shift) * mean_of >> 16) : 0;
}

// A background in another light. No light changes 0, which cells have that are left out.
static inline FRAMED_HD int cell_lit(int level, struct motion_light light)
{
    const int above = level > CELL_BLACK ? level - CELL_BLACK : 0;
    const int below = level - above;
    if (light.gain != GAIN_ONE)
        level = below + 2 * (int)(2u * (uint32_t)above * ((uint32_t)light.gain * 16) >> 16);
    return level ? clamp_to(level + light.shift, 0, CELL_WHITE) : 0;
}

// Whether a background says something of the light.
static inline FRAMED_HD bool cell_tells(int level)
{
    return level >= CELL_DIM && level <= CELL_BRIGHT;
}

// How far a cell may be from its background before the light counts as another: about 1/170.
static inline FRAMED_HD int cell_even(int level)
{
    return (level >> 8) + (level >> 9);
}

// From a background to a cell: what counts of the difference.
static inline FRAMED_HD int cell_difference(int mean, int lit)
{
    return clamp_to(mean - lit, -DIFFERENCE_MAX, DIFFERENCE_MAX);
}

// Whether a cell changed. `differences`: the sum over the cell and its neighbours; `range`: the lit
// slow background's over these; `lit`: the background; `threshold`: of this background.
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

// Whether a moved cell has an edge. `uneven`: the range of whole differences from lit slow over the
// cell and its neighbours.
static inline FRAMED_HD bool cell_edge(int uneven, int range, int lit)
{
    const int above = lit > CELL_BLACK ? lit - CELL_BLACK : 0;
    return uneven > mulhi(above, EDGE_SHARE) + mulhi(range, RANGE_SHARE);
}

// Rounds the averages of a picture: over pictures each value comes as often as any other, so that
// averages lose nothing by rounding. The bits of the picture's number, from the last to the first.
static inline FRAMED_HD int step_rounding(uint32_t steps)
{
    uint32_t v = steps & 0xffff;
    v = (v >> 8 | v << 8) & 0xffff;
    v = (v >> 4 & 0x0f0f) | (v & 0x0f0f) << 4;
    v = (v >> 2 & 0x3333) | (v & 0x3333) << 2;
    return (int)((v >> 1 & 0x5555) | (v & 0x5555) << 1);
}

// An average on its way to `target`.
static inline FRAMED_HD int cell_average(int average, int target, int share, int rounding)
{
    if (share == SHARE_ALL)
        return target;
    return average + ((((target - average) * share) + rounding) >> 16);
}

// The noise after a picture that is `residual` from the lit fast background.
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
