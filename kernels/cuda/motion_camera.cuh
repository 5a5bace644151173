// Motion on CUDA: a camera's device memory, and a block's own memory.
#ifndef FRAMED_KERNELS_CUDA_MOTION_CAMERA_CUH
#define FRAMED_KERNELS_CUDA_MOTION_CAMERA_CUH

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/motion_pair.cuh"
#include "kernels/cuda/warp_sum.cuh"
#include "kernels/motion_step.h"

enum {
    MOTION_BATCH = 256, // cameras per launch
    // Threads per block: at least MOTION_COLUMNS_MAX / 2, since each row of cells has a thread for
    // two of them.
    MOTION_THREADS_ALONE = 1024, // with one block per camera, before Hopper
#ifndef __CUDACC__
    MOTION_THREADS = 160, // on the host threads are slow
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    MOTION_THREADS = MOTION_THREADS_ALONE,
    MOTION_ROOM = 1, // blocks that must fit on a multiprocessor, which bounds registers
#else
    MOTION_THREADS = 320,
    MOTION_ROOM = 3,
#endif
    MOTION_FEW = 16, // launches of up to so many cameras use more blocks, for shorter steps
    MOTION_BLOCKS_FEW = 8,
    MOTION_BLOCKS_MANY = 2,
    MOTION_WARPS_MOST = MOTION_THREADS_ALONE / LANES,
    MOTION_EIGHT = 8,  // cells that a thread reads at once
    MOTION_AHEAD = 2,  // eights whose sums it reads before it uses the first
    MOTION_DIGIT = 64, // base of the two digits of gains and shifts
};

// In device memory.
struct motion_places {
    const uint32_t *sums;
    struct motion_changes *changes;
    uint16_t *planes; // of struct motion_planes, per block, if shared memory has no room
};

// In device memory. The state's planes follow it.
struct motion_camera {
    struct motion_places at;
    alignas(64) struct motion motion;
    alignas(64) struct motion_state state;
};

struct motion_batch {
    struct motion_camera *camera[MOTION_BATCH];
};

// A block's own rows of cells, and the same with the neighbours' rows that it reads.
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

// 16-bit values, in rows of motion.stride cells.
struct motion_planes {
    uint16_t *age, *mark;         // of the block's own rows; marks are noise, and MARK_*
    uint16_t *mean, *slow, *fast; // with the neighbours' rows; slow and fast in the picture's
                                  // light, means with PAIR_UPPER
};

enum { MARK_NOISE = 0x1fff, MARK_EDGE = 1 << 13, MARK_FAST = 1 << 14, MARK_SLOW = 1 << 15 };

static_assert((int)NOISE_MAX <= (int)MARK_NOISE, "bits");

// Includes room for words that are read past the end but not used.
static inline FRAMED_HD size_t motion_planes_bytes(const struct motion *m, int blocks)
{
    const int each = (m->rows + blocks - 1) / blocks;
    return sizeof(uint16_t) * (size_t)(m->stride * (5 * each + 6)) + 16;
}

// A block's counts, in halves of a word: at most MOTION_CELLS_MAX.
enum motion_count {
    // Against slow, and then against fast: cells that show the light, then those clearly above and
    // those clearly below the background.
    COUNT_TELL_ABOVE,
    COUNT_BELOW,
    COUNT_LIGHT,                     // words per background
    COUNT_CHANGED = 2 * COUNT_LIGHT, // against fast, and against both
    COUNTS
};

// The number of cells with each digit of a gain, or of a shift.
struct light_digits {
    unsigned upper[MOTION_DIGIT], lower[MOTION_DIGIT];
};

// A block's memory; the cluster reads its counts.
struct alignas(16) motion_block {
    unsigned count[COUNTS];
    struct motion_step step;
    unsigned warp[MOTION_WARPS_MOST];
    struct motion_state head; // without the planes
    // If the light changed, per background: digits, cells above the background at all, cells far
    // from it in the light of the gain, and of the shift.
    struct light_digits gain[2], shift[2];
    unsigned over[2], far_gain[2], far_shift[2];
    int gain_found, shift_found;
};

#endif
