// What all versions of a step have in common beside a cell's arithmetic.
#ifndef FRAMED_KERNELS_MOTION_REFERENCE_H
#define FRAMED_KERNELS_MOTION_REFERENCE_H

#include "kernels/motion_cell.h"
#include "kernels/motion_workspace.h"

// Cells that changed against fast, and against both.
struct motion_counts {
    int fast, both;
};

// How a picture's backgrounds are updated, and whether it lists cells.
struct motion_step {
    bool settling; // it learns, or a jump is not over: no cell is listed, and all are averaged
    bool jump;
    int slow_share, fast_share; // the first where a cell neither moves nor is absorbed
    int rounding;
};

// Whether this is a jump of the light; counts the picture in the state, and sets the flags.
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
