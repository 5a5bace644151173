// The additional memory for detection in one picture on a CPU.
#ifndef FRAMED_KERNELS_DETECT_WORKSPACE_H
#define FRAMED_KERNELS_DETECT_WORKSPACE_H

#include "kernels/detect_overlap.h"

struct detect_workspace {
    uint64_t *keys, *spare; // detect.capacity of each
    struct detect_boxes boxes;
    float *scores;
    int32_t *kept;  // places among the boxes, max_det
    uint64_t *gone; // a bit per box
    size_t bytes;   // of all
};

// Places the parts from `base` on; NULL computes `bytes` alone.
struct detect_workspace detect_workspace_at(const struct detect *, void *base);

#endif
