// A batch of pictures on CUDA, and the layout of each picture's device memory.
#ifndef FRAMED_KERNELS_CUDA_DETECT_BATCH_CUH
#define FRAMED_KERNELS_CUDA_DETECT_BATCH_CUH

#include "kernels/detect_overlap.h"

// The fastest of the tried block sizes on an H200.
enum {
    DETECT_BATCH = 32, // pictures per launch
    LANES_OF_WARP = 32,
    SCAN_THREADS = 128,
    SCAN_BLOCKS = 8, // per multiprocessor
    SCAN_ANCHORS = 64,
    SCAN_VECTOR = 4, // elements per load
    SCAN_AHEAD = 5,  // loads issued before the first is used
    SCAN_GROUPS = SCAN_ANCHORS / SCAN_VECTOR,
    SCAN_SHARES = SCAN_THREADS / SCAN_GROUPS,
    SCAN_WARPS = SCAN_THREADS / LANES_OF_WARP,
    SCAN_ROWS = SCAN_ANCHORS / SCAN_WARPS,
#ifdef __CUDACC__
    DETECT_FEW = 1024, // candidates whose list fits in a block's shared memory
    FINISH_THREADS = 512,
#else // on the host threads are slow, and many candidates are rare
    DETECT_FEW = 128,
    FINISH_THREADS = 64,
#endif
    FINISH_BLOCKS = 2, // per multiprocessor, beside the remaining blocks of a scan
    FINISH_WARPS = FINISH_THREADS / LANES_OF_WARP,
    GONE_WORDS = DETECT_CANDIDATES_CUDA / LANES_OF_WARP,
};

enum { COUNT_CANDIDATES, COUNT_DROPPED, COUNTS };

// Offsets of the parts in a picture's memory.
struct detect_layout {
    size_t keys, sorted, floats[5], label, quad, scores, kept, bytes;
    int cut; // maximum of candidates to process
};

struct detect_picture {
    uint32_t *counts;
    uint64_t *keys, *sorted;
    struct detect_boxes boxes;
    float *scores;
    int32_t *kept;
};

struct detect_batch {
    const struct detect *detect; // device memory
    uint8_t *pictures, *results;
    size_t result_bytes;
    struct detect_layout layout;
    int n;
    struct detect_input in[DETECT_BATCH];
};

static inline FRAMED_HD size_t layout_take(struct detect_layout *layout, size_t bytes)
{
    const size_t at = layout->bytes;
    layout->bytes += (bytes + 255) / 256 * 256;
    return at;
}

static inline struct detect_layout detect_layout_of(const struct detect *d)
{
    struct detect_layout l = {};
    const int most = DETECT_CANDIDATES_CUDA;
    l.cut = d->params.candidates < most ? d->params.candidates : most;
    size_t padded = FINISH_THREADS; // to a power of two, for the sort
    while (padded < (size_t)l.cut)
        padded *= 2;
    layout_take(&l, COUNTS * sizeof(uint32_t));
    l.keys = layout_take(&l, (size_t)d->capacity * sizeof(uint64_t));
    l.sorted = layout_take(&l, padded * sizeof(uint64_t));
    for (int i = 0; i < 5; i++)
        l.floats[i] = layout_take(&l, padded * sizeof(float));
    l.label = layout_take(&l, padded * sizeof(int32_t));
    l.quad = layout_take(&l, d->params.rotated ? padded * 8 * sizeof(float) : 0);
    l.scores = layout_take(&l, padded * sizeof(float));
    l.kept = layout_take(&l, (size_t)d->params.max_det * sizeof(int32_t));
    return l;
}

static __device__ inline struct detect_picture picture_at(const struct detect_batch *batch, int p)
{
    const struct detect_layout *l = &batch->layout;
    uint8_t *base = batch->pictures + (size_t)p * l->bytes;
    struct detect_picture picture;
    picture.counts = (uint32_t *)base;
    picture.keys = (uint64_t *)(base + l->keys);
    picture.sorted = (uint64_t *)(base + l->sorted);
    picture.boxes.x1 = (float *)(base + l->floats[0]);
    picture.boxes.y1 = (float *)(base + l->floats[1]);
    picture.boxes.x2 = (float *)(base + l->floats[2]);
    picture.boxes.y2 = (float *)(base + l->floats[3]);
    picture.boxes.area = (float *)(base + l->floats[4]);
    picture.boxes.label = (int32_t *)(base + l->label);
    picture.boxes.quad = (float(*)[8])(base + l->quad);
    picture.scores = (float *)(base + l->scores);
    picture.kept = (int32_t *)(base + l->kept);
    return picture;
}

// Lets the next kernel start on the device, up to its previous_kernel_wait.
static __device__ inline void next_kernel_may_begin()
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// Waits until the previous kernel is done and all its writes are visible.
static __device__ inline void previous_kernel_wait()
{
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

#endif
