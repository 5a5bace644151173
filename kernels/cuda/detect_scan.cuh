// A batch of pictures on CUDA, and the first kernel of detection: finds the candidates in tensors.
#ifndef FRAMED_KERNELS_CUDA_DETECT_SCAN_CUH
#define FRAMED_KERNELS_CUDA_DETECT_SCAN_CUH

#include "kernels/detect_overlap.h"

// --- a batch, and the layout of each picture's device memory

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

// --- scans

// Called by whole warps: appends the keys of the lanes that have one.
static __device__ inline void keys_append(struct detect_picture *picture, bool has, uint64_t key)
{
    const unsigned lane = threadIdx.x % LANES_OF_WARP, which = __ballot_sync(~0u, has);
    uint32_t base = 0;
    if (which == 0)
        return;
    if (lane == 0)
        base = atomicAdd(&picture->counts[COUNT_CANDIDATES], (uint32_t)__popc(which));
    base = __shfl_sync(~0u, base, 0);
    if (has)
        picture->keys[base + (uint32_t)__popc(which & ((1u << lane) - 1))] = key;
}

// Returns the score of an element of a dense tensor.
template <bool PLAIN>
static __device__ inline float dense_score(const struct detect *d, float x, float objectness)
{
    if (PLAIN)
        return x;
    const float score = d->params.activation == DETECT_SIGMOID ? sigmoid_steps(x) : x;
    return d->objectness ? objectness * score : score;
}

// --- planes

// The type that loads SCAN_VECTOR elements at once.
template <int DTYPE> struct vector_of {
    typedef uint32_t type; // s8, u8
};
template <> struct vector_of<DETECT_F32> {
    typedef uint4 type;
};
template <> struct vector_of<DETECT_F16> {
    typedef uint2 type;
};
template <> struct vector_of<DETECT_BF16> {
    typedef uint2 type;
};

// Loads elements i to i + n - 1, n at most SCAN_VECTOR. `together`: n is SCAN_VECTOR, and they are
// aligned to their common size.
template <int DTYPE>
static __device__ inline void elements_load(float to[SCAN_VECTOR], const void *data,
                                            const struct detect_format *format, size_t i, int n,
                                            bool together)
{
    typedef typename vector_of<DTYPE>::type vector;
    const struct detect_format known = {(enum detect_dtype)DTYPE, format->scale, format->zero};
    if (together) {
        const vector loaded = ((const vector *)data)[i / SCAN_VECTOR];
#pragma unroll
        for (int k = 0; k < SCAN_VECTOR; k++)
            to[k] = element_at(&loaded, &known, k);
    } else {
#pragma unroll
        for (int k = 0; k < SCAN_VECTOR; k++)
            to[k] = k < n ? element_at(data, &known, i + k) : -INFINITY;
    }
}

// Returns the first largest score of each anchor of a block, in the first SCAN_ANCHORS threads. The
// classes are split into SCAN_SHARES shares; each thread has one share of SCAN_VECTOR anchors.
static __device__ inline void best_of_shares(const float score[SCAN_VECTOR],
                                             const int label[SCAN_VECTOR], float *ret_best,
                                             int *ret_label)
{
    __shared__ float scores[SCAN_SHARES][SCAN_ANCHORS];
    __shared__ int labels[SCAN_SHARES][SCAN_ANCHORS];
    const int at = threadIdx.x % SCAN_GROUPS * SCAN_VECTOR, share = threadIdx.x / SCAN_GROUPS;
    for (int k = 0; k < SCAN_VECTOR; k++) {
        scores[share][at + k] = score[k];
        labels[share][at + k] = label[k];
    }
    __syncthreads();
    if (threadIdx.x >= SCAN_ANCHORS)
        return;
    *ret_best = scores[0][threadIdx.x];
    *ret_label = labels[0][threadIdx.x];
    for (int i = 1; i < SCAN_SHARES; i++)
        if (scores[i][threadIdx.x] > *ret_best) {
            *ret_best = scores[i][threadIdx.x];
            *ret_label = labels[i][threadIdx.x];
        }
}

// A thread has SCAN_VECTOR neighbouring anchors and a share of the classes. It loads the scores of
// SCAN_AHEAD classes before it uses the first, to keep memory busy: an append to the list that
// threads share is a fence for loads.
template <int DTYPE, bool PLAIN>
static __device__ inline void scan_planes(const struct detect *d, const struct detect_input *in,
                                          struct detect_picture *picture)
{
    const uint32_t block = blockIdx.x * SCAN_ANCHORS, anchors = d->params.anchors;
    const uint32_t anchor = block + threadIdx.x % SCAN_GROUPS * SCAN_VECTOR;
    const int share = threadIdx.x / SCAN_GROUPS, classes = d->params.classes;
    const int n = anchor < anchors ? (int)(anchors - anchor) : 0;
    const int most = (classes + SCAN_SHARES - 1) / SCAN_SHARES; // of a share
    const int begin = classes * share / SCAN_SHARES, end = classes * (share + 1) / SCAN_SHARES;
    const bool all = d->params.multi_label;
    const void *data = in->tensor[DETECT_BOXES];
    const struct detect_format format = d->params.format[DETECT_BOXES];
    const bool together = n >= SCAN_VECTOR && anchors % SCAN_VECTOR == 0 &&
                          (uintptr_t)data % sizeof(typename vector_of<DTYPE>::type) == 0;
    float objectness[SCAN_VECTOR], best[SCAN_VECTOR];
    int best_label[SCAN_VECTOR];
#pragma unroll
    for (int k = 0; k < SCAN_VECTOR; k++) {
        objectness[k] = !PLAIN && k < n ? score_terms_of(d, in, anchor + k).objectness : 1;
        best[k] = -INFINITY;
        best_label[k] = 0;
    }
    for (int done = 0; done < most; done += SCAN_AHEAD) {
        float score[SCAN_AHEAD][SCAN_VECTOR];
#pragma unroll
        for (int i = 0; i < SCAN_AHEAD; i++) {
            const int c = begin + done + i;
            const size_t first = d->score_column + (size_t)c * anchors + anchor;
            elements_load<DTYPE>(score[i], data, &format, first, c < end ? n : 0,
                                 together && c < end);
        }
#pragma unroll
        for (int i = 0; i < SCAN_AHEAD; i++) {
            const int c = begin + done + i;
#pragma unroll
            for (int k = 0; k < SCAN_VECTOR; k++) {
                const bool real = k < n && c < end;
                const float x =
                    real ? dense_score<PLAIN>(d, score[i][k], objectness[k]) : -INFINITY;
                if (all)
                    keys_append(picture, real && x > d->conf[real ? c : 0],
                                key_of(x, anchor + k, c));
                if (x > best[k]) {
                    best[k] = x;
                    best_label[k] = c;
                }
            }
        }
    }
    if (all)
        return;
    float score = -INFINITY;
    int label = 0;
    best_of_shares(best, best_label, &score, &label);
    if (threadIdx.x < SCAN_ANCHORS)
        keys_append(picture, score > d->conf_least && score > d->conf[label],
                    key_of(score, block + threadIdx.x, label));
}

// --- rows

// A warp has SCAN_ROWS anchors; its lanes share the classes.
template <int DTYPE, bool PLAIN>
static __device__ inline void scan_rows(const struct detect *d, const struct detect_input *in,
                                        struct detect_picture *picture)
{
    const int lane = threadIdx.x % LANES_OF_WARP, warp = threadIdx.x / LANES_OF_WARP;
    const int t = d->score_tensor, classes = d->params.classes;
    const uint32_t anchor = blockIdx.x * SCAN_ANCHORS + warp * SCAN_ROWS;
    const uint32_t anchors = d->params.anchors;
    const int n = anchor < anchors ? (int)(anchors - anchor) : 0;
    const void *data = in->tensor[t];
    const struct detect_format *format = &d->params.format[t];
    const struct detect_format known = {(enum detect_dtype)DTYPE, format->scale, format->zero};
    const size_t first = (size_t)anchor * d->score_step + d->score_column;
    float objectness[SCAN_ROWS], best[SCAN_ROWS];
    int best_label[SCAN_ROWS];
#pragma unroll
    for (int k = 0; k < SCAN_ROWS; k++) {
        objectness[k] = !PLAIN && k < n ? score_terms_of(d, in, anchor + k).objectness : 1;
        best[k] = -INFINITY;
        best_label[k] = 0;
    }
    for (int c = lane; c - lane < classes; c += LANES_OF_WARP) {
        float score[SCAN_ROWS];
#pragma unroll
        for (int k = 0; k < SCAN_ROWS; k++)
            score[k] = k < n && c < classes
                           ? element_at(data, &known, first + (size_t)k * d->score_step + c)
                           : -INFINITY;
#pragma unroll
        for (int k = 0; k < SCAN_ROWS; k++) {
            const bool real = k < n && c < classes;
            const float x = real ? dense_score<PLAIN>(d, score[k], objectness[k]) : -INFINITY;
            if (d->params.multi_label)
                keys_append(picture, real && x > d->conf[real ? c : 0], key_of(x, anchor + k, c));
            if (x > best[k]) {
                best[k] = x;
                best_label[k] = c;
            }
        }
    }
    if (d->params.multi_label)
        return;
    float mine = -INFINITY; // in lane k: of anchor k
    int label = 0;
#pragma unroll
    for (int k = 0; k < SCAN_ROWS; k++) {
        for (int other = LANES_OF_WARP / 2; other > 0; other /= 2) {
            const float x = __shfl_xor_sync(~0u, best[k], other);
            const int c = __shfl_xor_sync(~0u, best_label[k], other);
            if (x > best[k] || (x == best[k] && c < best_label[k])) {
                best[k] = x;
                best_label[k] = c;
            }
        }
        mine = lane == k ? best[k] : mine;
        label = lane == k ? best_label[k] : label;
    }
    keys_append(picture, mine > d->conf_least && mine > d->conf[label],
                key_of(mine, anchor + lane, label));
}

// --- few

// For heads with few anchors: one thread per anchor.
static __device__ inline void scan_few(const struct detect *d, const struct detect_input *in,
                                       struct detect_picture *picture)
{
    const uint32_t anchor = blockIdx.x * SCAN_ANCHORS + threadIdx.x;
    const bool real = threadIdx.x < SCAN_ANCHORS && anchor < rows_of(d, in);
    const bool listed = d->label_tensor >= 0, all = d->params.multi_label;
    struct score_terms terms = {1, 0, 1};
    float best = -INFINITY;
    int best_label = 0;
    if (real)
        terms = score_terms_of(d, in, anchor);
    if (listed && real) {
        best = score_of(d, in, anchor, 0, &terms);
        best_label = label_of(d, in, anchor);
        if (best_label < 0 && best > d->conf_least)
            atomicAdd(&picture->counts[COUNT_DROPPED], 1u);
    }
    for (int c = 0; !listed && c < d->params.classes; c++) {
        const float score = real ? score_of(d, in, anchor, c, &terms) : -INFINITY;
        if (all)
            keys_append(picture, real && score > d->conf[c], key_of(score, anchor, c));
        if (score > best) {
            best = score;
            best_label = c;
        }
    }
    const bool has =
        real && !all && best_label >= 0 && best > d->conf[best_label < 0 ? 0 : best_label];
    keys_append(picture, has, key_of(best, anchor, best_label));
}

template <int DTYPE, bool PLAIN>
static __global__ void __launch_bounds__(SCAN_THREADS, SCAN_BLOCKS)
    detect_scan_planes(const __grid_constant__ struct detect_batch batch)
{
    struct detect_picture picture = picture_at(&batch, blockIdx.y);
    next_kernel_may_begin();
    scan_planes<DTYPE, PLAIN>(batch.detect, &batch.in[blockIdx.y], &picture);
}

template <int DTYPE, bool PLAIN>
static __global__ void __launch_bounds__(SCAN_THREADS)
    detect_scan_rows(const __grid_constant__ struct detect_batch batch)
{
    struct detect_picture picture = picture_at(&batch, blockIdx.y);
    next_kernel_may_begin();
    scan_rows<DTYPE, PLAIN>(batch.detect, &batch.in[blockIdx.y], &picture);
}

static __global__ void __launch_bounds__(SCAN_THREADS)
    detect_scan_few(const __grid_constant__ struct detect_batch batch)
{
    struct detect_picture picture = picture_at(&batch, blockIdx.y);
    next_kernel_may_begin();
    scan_few(batch.detect, &batch.in[blockIdx.y], &picture);
}

// Each layout and type of scores has its own kernel, and a variant for plain scores.
typedef void scan_fn(struct detect_batch);

template <int DTYPE> static scan_fn *scan_of(bool planes, bool plain)
{
    if (planes)
        return plain ? detect_scan_planes<DTYPE, true> : detect_scan_planes<DTYPE, false>;
    return plain ? detect_scan_rows<DTYPE, true> : detect_scan_rows<DTYPE, false>;
}

static scan_fn *scan_for(const struct detect *d)
{
    const bool planes = d->params.planes;
    const bool plain = d->params.activation == DETECT_PLAIN && !d->objectness;
    if (d->label_tensor >= 0 || d->params.activation == DETECT_SOFTMAX)
        return detect_scan_few;
    switch (d->params.format[d->score_tensor].dtype) {
    case DETECT_F16:
        return scan_of<DETECT_F16>(planes, plain);
    case DETECT_BF16:
        return scan_of<DETECT_BF16>(planes, plain);
    case DETECT_S8:
        return scan_of<DETECT_S8>(planes, plain);
    case DETECT_U8:
        return scan_of<DETECT_U8>(planes, plain);
    default:
        return scan_of<DETECT_F32>(planes, plain);
    }
}

#endif
