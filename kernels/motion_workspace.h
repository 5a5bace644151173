// The additional memory for a step on a CPU.
#ifndef FRAMED_KERNELS_MOTION_WORKSPACE_H
#define FRAMED_KERNELS_MOTION_WORKSPACE_H

#include "kernels/motion.h"

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

#endif
