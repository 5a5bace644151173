// Motion on CUDA: what a camera has in device memory, and what a block shares.
#ifndef FRAMED_KERNELS_CUDA_MOTION_CAMERA_CUH
#define FRAMED_KERNELS_CUDA_MOTION_CAMERA_CUH

#include "kernels/cuda/warp_sum.cuh"
#include "kernels/motion_reference.h"

enum {
    MOTION_BATCH = 256, // cameras of a launch
#ifdef __CUDACC__
    MOTION_THREADS = 1024,
#else // on the host threads are slow
    MOTION_THREADS = 320,
#endif
    MOTION_AHEAD = 5, // rows that a thread reads before it looks at the first
    MOTION_WARPS = MOTION_THREADS / LANES,
    MOTION_WORDS_MAX = (MOTION_CELLS_MAX + MOTION_LANES * MOTION_ROWS_MAX) / LANES,
    GAINS = 1 << GAIN_BITS,
    SHIFTS = 1 << SHIFT_BITS,
};

// In device memory, like all that it points to.
struct motion_camera {
    const struct motion *motion;
    struct motion_state *state;
    const uint32_t *sums;
    struct motion_changes *changes;
    uint16_t *planes; // of struct motion_planes, where a block's memory has no room for them
};

struct motion_batch {
    const struct motion_camera *camera[MOTION_BATCH];
    size_t shared_bytes; // that a block has
};

// Of 16 bits, in rows of motion.stride cells. The highest bit of a mean says that the cell changed
// against slow, and that of fast, that it changed against fast.
struct motion_planes {
    uint16_t *mean, *slow, *fast; // slow and fast as the light shows them
};

enum { CHANGED = 0x8000, LEVEL = 0x7fff };

static inline FRAMED_HD size_t motion_planes_bytes(const struct motion *m)
{
    return 3 * sizeof(uint16_t) * (size_t)(m->stride * m->rows);
}

// The cells of a thread: a column, and some rows of it.
struct motion_strip {
    int x, y0, y1;
};

// Against one background.
struct light_counts {
    unsigned tell, over;   // cells that tell of the light, of which with more than the background
    unsigned above, below; // and by more than a little
    unsigned far_gain, far_shift;
};

// What the threads of a block share.
struct motion_block {
    struct motion_state head; // but for the planes
    struct light_counts light[2];
    struct motion_step step;
    unsigned fast, both; // changed cells
    int gain, shift;     // found: of struct motion_light
    unsigned warp[MOTION_WARPS];
    unsigned shifts[SHIFTS];
    union { // the light is found before cells move
        unsigned gains[GAINS];
        struct {
            unsigned moved[MOTION_WORDS_MAX]; // a bit for each cell, row by row
            unsigned edges[MOTION_WORDS_MAX]; // and for those of them that have an edge
        } map;
    };
};

#endif
