// Which of several GPUs a camera goes to. Pure.
#ifndef FRAMED_DAEMON_DEVICE_PLACEMENT_H
#define FRAMED_DAEMON_DEVICE_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/types.h"

// What cameras take of a GPU, as far as the budget knows.
struct gpu_share {
    size_t bytes;    // of its memory
    uint64_t pixels; // of the pictures that its NVDEC decodes, one picture of each camera
    int cameras;
};

struct placement_gpu {
    int number;
    const uint8_t *uuid; // 16 bytes; NULL: not known
    bool usable;
    struct gpu_share taken;
    size_t limit; // of taken.bytes
};

// The GPU that the camera chooses, whether it has room or not; else the one with the most room: of
// those with memory for the camera (of all, where none has) the one whose NVDEC has the least to
// decode, then the one with the smallest part of its memory taken, then the one with the fewest
// cameras, then the first. Returns its index, -1 where none is usable.
int placement_choose(const struct placement_gpu[], int n, const struct gpu_choice *, size_t bytes);
// Whether the camera chooses this GPU and no other.
bool placement_is_chosen(const struct placement_gpu *, const struct gpu_choice *);

#endif
