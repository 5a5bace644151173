// The first kernel of detection: candidates out of tensors.
#ifndef FRAMED_KERNELS_CUDA_DETECT_SCAN_CUH
#define FRAMED_KERNELS_CUDA_DETECT_SCAN_CUH

#include "kernels/cuda/detect_batch.cuh"

// Called by whole warps: adds the keys of the lanes that have one.
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

// A dense score, of an element that is `i` in the tensor.
template <int DTYPE, bool PLAIN>
static __device__ inline float dense_score(const struct detect *d, const void *data,
                                           const struct detect_format *format, size_t i,
                                           float objectness)
{
    const struct detect_format known = {(enum detect_dtype)DTYPE, format->scale, format->zero};
    const float x = element_at(data, &known, i);
    if (PLAIN)
        return x;
    const float score = d->params.activation == DETECT_SIGMOID ? sigmoid_steps(x) : x;
    return d->objectness ? objectness * score : score;
}

// Planes: neighbouring threads have neighbouring anchors, and each of SCAN_SHARES groups has a run
// of the classes.
template <int DTYPE, bool PLAIN>
static __device__ inline void scan_planes(const struct detect *d, const struct detect_input *in,
                                          struct detect_picture *picture)
{
    __shared__ float shared_best[SCAN_SHARES][SCAN_ANCHORS];
    __shared__ int shared_label[SCAN_SHARES][SCAN_ANCHORS];
    const int x = threadIdx.x % SCAN_ANCHORS, share = threadIdx.x / SCAN_ANCHORS;
    const uint32_t anchor = blockIdx.x * SCAN_ANCHORS + x;
    const bool real = anchor < (uint32_t)d->params.anchors, all = d->params.multi_label;
    const int classes = d->params.classes, end = classes * (share + 1) / SCAN_SHARES;
    const size_t next = d->score_next, first = d->score_column + (size_t)anchor;
    const void *data = in->tensor[DETECT_BOXES];
    const struct detect_format format = d->params.format[DETECT_BOXES];
    float objectness = 1, best = -INFINITY;
    int best_label = 0;
    if (!PLAIN && real)
        objectness = score_terms_of(d, in, anchor).objectness;
#ifdef __CUDACC__
#pragma unroll 8
#endif
    for (int c = classes * share / SCAN_SHARES; c < end; c++) {
        float score = -INFINITY;
        if (real)
            score = dense_score<DTYPE, PLAIN>(d, data, &format, first + c * next, objectness);
        if (all)
            keys_append(picture, real && score > d->conf[c], key_of(score, anchor, c));
        if (score > best) {
            best = score;
            best_label = c;
        }
    }
    shared_best[share][x] = best;
    shared_label[share][x] = best_label;
    __syncthreads();
    if (all || share > 0)
        return;
    for (int i = 1; i < SCAN_SHARES; i++)
        if (shared_best[i][x] > best) {
            best = shared_best[i][x];
            best_label = shared_label[i][x];
        }
    keys_append(picture, real && best > d->conf[best_label], key_of(best, anchor, best_label));
}

// Rows: a warp has an anchor, its lanes the classes.
template <int DTYPE, bool PLAIN>
static __device__ inline void scan_rows(const struct detect *d, const struct detect_input *in,
                                        struct detect_picture *picture)
{
    const int lane = threadIdx.x % LANES_OF_WARP, warp = threadIdx.x / LANES_OF_WARP;
    const int t = d->score_tensor, classes = d->params.classes;
    const void *data = in->tensor[t];
    const struct detect_format format = d->params.format[t];
    for (int k = warp; k < SCAN_ANCHORS; k += SCAN_THREADS / LANES_OF_WARP) {
        const uint32_t anchor = blockIdx.x * SCAN_ANCHORS + k;
        if (anchor >= (uint32_t)d->params.anchors)
            return;
        const size_t first = (size_t)anchor * d->score_step + d->score_column;
        const float objectness = PLAIN ? 1 : score_terms_of(d, in, anchor).objectness;
        float best = -INFINITY;
        int best_label = 0;
        for (int from = 0; from < classes; from += LANES_OF_WARP) {
            const int c = from + lane;
            float score = -INFINITY;
            if (c < classes)
                score = dense_score<DTYPE, PLAIN>(d, data, &format, first + c, objectness);
            if (d->params.multi_label)
                keys_append(picture, c < classes && score > d->conf[c], key_of(score, anchor, c));
            if (score > best) {
                best = score;
                best_label = c;
            }
        }
        if (d->params.multi_label)
            continue;
        for (int other = LANES_OF_WARP / 2; other > 0; other /= 2) {
            const float score = __shfl_xor_sync(~0u, best, other);
            const int label = __shfl_xor_sync(~0u, best_label, other);
            if (score > best || (score == best && label < best_label)) {
                best = score;
                best_label = label;
            }
        }
        keys_append(picture, lane == 0 && best > d->conf[best_label],
                    key_of(best, anchor, best_label));
    }
}

// Heads of few anchors: a thread has an anchor.
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
static __global__ void detect_scan(const __grid_constant__ struct detect_batch batch)
{
    const struct detect *d = batch.detect;
    const struct detect_input *in = &batch.in[blockIdx.y];
    struct detect_picture picture = picture_at(&batch, blockIdx.y);
    if (d->label_tensor >= 0 || d->params.activation == DETECT_SOFTMAX)
        scan_few(d, in, &picture);
    else if (d->params.planes)
        scan_planes<DTYPE, PLAIN>(d, in, &picture);
    else
        scan_rows<DTYPE, PLAIN>(d, in, &picture);
}

#endif
