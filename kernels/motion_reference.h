// Code that all versions of a step share, apart from a cell's arithmetic.
#ifndef FRAMED_KERNELS_MOTION_REFERENCE_H
#define FRAMED_KERNELS_MOTION_REFERENCE_H

#include "kernels/motion_cell.h"
#include "kernels/motion_workspace.h"

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
