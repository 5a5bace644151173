// Chooses one of several GPUs for a camera. Pure.
#ifndef FRAMED_DAEMON_DEVICE_PLACEMENT_H
#define FRAMED_DAEMON_DEVICE_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/types.h"

// The use of a GPU by cameras, as planned by the budget.
struct gpu_share {
    size_t bytes;    // of its memory
    uint64_t pixels; // decoded by its NVDEC, one picture of each camera
    int cameras;
};

struct placement_gpu {
    int number;
    const uint8_t *uuid; // 16 bytes; NULL: unknown
    bool usable;
    struct gpu_share taken;
    size_t limit; // of taken.bytes
};

// Returns the index of the GPU that the camera chooses, with or without room; else of the one with
// the most room: among GPUs with memory for the camera (among all, if none has) the one whose NVDEC
// has the least to decode, then the smallest part of its memory taken, then the fewest cameras,
// then the first. -1: none is usable.
int placement_choose(const struct placement_gpu[], int n, const struct gpu_choice *, size_t bytes);
// True if the camera chooses this GPU and no other.
bool placement_is_chosen(const struct placement_gpu *, const struct gpu_choice *);

#endif
