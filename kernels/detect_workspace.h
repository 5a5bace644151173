// The memory that detecting in one picture needs beside its result, on a CPU.
#ifndef FRAMED_KERNELS_DETECT_WORKSPACE_H
#define FRAMED_KERNELS_DETECT_WORKSPACE_H

#include "kernels/detect_overlap.h"

struct detect_workspace {
    uint64_t *keys, *spare; // detect.capacity of each
    struct detect_boxes boxes;
    float *scores;
    int32_t *kept;  // places among the boxes, max_det
    uint64_t *gone; // a bit a box
    size_t bytes;   // of all
};

// Where its parts lie from `base` on, which may be NULL to ask for the bytes alone.
struct detect_workspace detect_workspace_at(const struct detect *, void *base);

#endif
