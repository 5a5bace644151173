// Motion on CUDA: what a camera has in device memory, and what a block has in its own.
#ifndef FRAMED_KERNELS_CUDA_MOTION_CAMERA_CUH
#define FRAMED_KERNELS_CUDA_MOTION_CAMERA_CUH

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/motion_pair.cuh"
#include "kernels/cuda/warp_sum.cuh"
#include "kernels/motion_reference.h"

enum {
    MOTION_BATCH = 256, // cameras of a launch
    // Threads of a block: MOTION_COLUMNS_MAX / 2 at least, since each row of cells has a thread for
    // two of them.
    MOTION_THREADS_ALONE = 1024, // of one that has a camera alone, before Hopper
#ifndef __CUDACC__
    MOTION_THREADS = 160, // on the host threads are slow
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    MOTION_THREADS = MOTION_THREADS_ALONE,
    MOTION_ROOM = 1, // blocks that a multiprocessor is to have room for, which bounds registers
#else
    MOTION_THREADS = 320,
    MOTION_ROOM = 3,
#endif
    MOTION_FEW = 16, // cameras of a launch; they have more blocks, so that a step takes less time
    MOTION_BLOCKS_FEW = 8,
    MOTION_BLOCKS_MANY = 2,
    MOTION_WARPS_MOST = MOTION_THREADS_ALONE / LANES,
    MOTION_EIGHT = 8,  // cells that a thread reads at once
    MOTION_AHEAD = 2,  // eights whose sums it reads before it looks at the first
    MOTION_DIGIT = 64, // gains and shifts have two digits
};

// In device memory.
struct motion_places {
    const uint32_t *sums;
    struct motion_changes *changes;
    uint16_t *planes; // of struct motion_planes, block by block, where shared memory has no room
};

// In device memory. The state's planes are behind it.
struct motion_camera {
    struct motion_places at;
    alignas(64) struct motion motion;
    alignas(64) struct motion_state state;
};

struct motion_batch {
    struct motion_camera *camera[MOTION_BATCH];
};

// The rows of cells that a block has, and with those of neighbours that it looks at.
struct motion_rows {
    int y0, y1;
    int first, end;
};

static inline FRAMED_HD struct motion_rows motion_rows_of(const struct motion *m, int block,
                                                          int blocks)
{
    const int each = (m->rows + blocks - 1) / blocks;
    const int y0 = block * each < m->rows ? block * each : m->rows;
    const int y1 = y0 + each < m->rows ? y0 + each : m->rows;
    return {y0, y1, y0 > 0 ? y0 - 1 : 0, y1 < m->rows ? y1 + 1 : m->rows};
}

// Of 16 bits, in rows of motion.stride cells.
struct motion_planes {
    uint16_t *age, *mark;         // of the block's own rows; marks are noise, and MARK_*
    uint16_t *mean, *slow, *fast; // with the neighbours' rows; slow and fast as the light shows
                                  // them, and means with PAIR_UPPER
};

enum { MARK_NOISE = 0x1fff, MARK_EDGE = 1 << 13, MARK_FAST = 1 << 14, MARK_SLOW = 1 << 15 };

static_assert((int)NOISE_MAX <= (int)MARK_NOISE, "bits");

// With room for what is read beyond the end, and not looked at.
static inline FRAMED_HD size_t motion_planes_bytes(const struct motion *m, int blocks)
{
    const int each = (m->rows + blocks - 1) / blocks;
    return sizeof(uint16_t) * (size_t)(m->stride * (5 * each + 6)) + 16;
}

// What a block counts, in halves of a word: at most MOTION_CELLS_MAX.
enum motion_count {
    // Against slow, and then against fast: cells that tell of the light, of which so many have more
    // or less than the background by more than a little.
    COUNT_TELL_ABOVE,
    COUNT_BELOW,
    COUNT_LIGHT,                     // words of one background
    COUNT_CHANGED = 2 * COUNT_LIGHT, // against fast, and against both
    COUNTS
};

// How many cells have which digit of a gain, or of a shift.
struct light_digits {
    unsigned upper[MOTION_DIGIT], lower[MOTION_DIGIT];
};

// A block's memory, of which the cluster reads the counts.
struct alignas(16) motion_block {
    unsigned count[COUNTS];
    struct motion_step step;
    unsigned warp[MOTION_WARPS_MOST];
    struct motion_state head; // but for the planes
    // Where the light is another, by background: digits, cells with more than the background at
    // all, cells that are far from it in the light of the gain, and of the shift.
    struct light_digits gain[2], shift[2];
    unsigned over[2], far_gain[2], far_shift[2];
    int gain_found, shift_found;
};

#endif
