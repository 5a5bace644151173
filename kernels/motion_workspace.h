// The memory that a step needs beside its result, on a CPU.
#ifndef FRAMED_KERNELS_MOTION_WORKSPACE_H
#define FRAMED_KERNELS_MOTION_WORKSPACE_H

#include "kernels/motion.h"

// Planes of 16 bits. `mean`, `fast` and `change` have rows of motion.stride cells, `slow` of
// `pitch`.
struct motion_workspace {
    uint16_t *mean;
    uint16_t *slow;   // lit; ahead of a row and behind it its first and its last cell once more
    uint16_t *fast;   // lit
    uint16_t *change; // CHANGE_SLOW | CHANGE_FAST
    ptrdiff_t pitch;
};

enum { CHANGE_SLOW = 1, CHANGE_FAST = 2, CHANGE_BOTH = 3 };

static inline struct motion_workspace motion_workspace_at(const struct motion *m, void *base)
{
    const size_t plane = (size_t)(m->stride * m->rows);
    struct motion_workspace w;
    w.pitch = m->stride + 2 * MOTION_LANES;
    w.mean = (uint16_t *)base;
    w.fast = w.mean + plane;
    w.change = w.fast + plane;
    w.slow = w.change + plane + MOTION_LANES;
    return w;
}

#endif
