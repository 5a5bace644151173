// The kernels of detection, in this order:
//   detect_scan_*  makes keys of the candidates among all anchors of all pictures, in the order of
//                  an atomic counter; they are sorted later, so this order does not matter
//   detect_finish  one block per picture: sorts, makes boxes, suppresses and writes the result
// A picture's counters in device memory are reset by their last reader, for the next batch.
#ifndef FRAMED_KERNELS_CUDA_DETECT_CUH
#define FRAMED_KERNELS_CUDA_DETECT_CUH

#include "kernels/cuda/detect_keep.cuh"
#include "kernels/cuda/detect_scan.cuh"

// Stores 32 bytes with two stores: the result may be behind a bus.
static __device__ inline void words_store(void *to, const void *from)
{
    uint4 words[2];
    memcpy(words, from, sizeof words);
    ((uint4 *)to)[0] = words[0];
    ((uint4 *)to)[1] = words[1];
}

// Writes a picture's result and resets its counters for the next batch.
static __device__ inline void result_write(const struct detect_batch *batch, int picture,
                                           struct detect_picture *p, int count)
{
    const struct detect *d = batch->detect;
    const struct detect_input *in = &batch->in[picture];
    const bool softly = d->params.suppression == DETECT_SOFT;
    struct detect_result *result =
        (struct detect_result *)(batch->results + (size_t)picture * batch->result_bytes);
    for (int i = threadIdx.x; i < count; i += FINISH_THREADS) {
        float corners[8];
        const uint64_t key = p->sorted[p->kept[i]];
        const float score = softly ? p->scores[p->kept[i]] : key_score(key);
        const struct detection found = detection_of(d, in, key, score, corners);
        words_store(detect_found(result) + i, &found);
        if (d->params.quads)
            words_store(detect_quads(d, result) + 8 * (size_t)i, corners);
    }
    for (int i = threadIdx.x; i < count * d->extra; i += FINISH_THREADS)
        extra_write(d, in, result, i / d->extra, key_anchor(p->sorted[p->kept[i / d->extra]]),
                    i % d->extra);
    if (threadIdx.x == 0) {
        const uint32_t candidates = p->counts[COUNT_CANDIDATES];
        struct detect_result summary;
        summary.count = count;
        summary.flags = candidates > (uint32_t)batch->layout.cut ? DETECT_CUT : 0;
        summary.candidates = candidates;
        summary.dropped = p->counts[COUNT_DROPPED];
        *result = summary;
        for (int i = 0; i < COUNTS; i++)
            p->counts[i] = 0;
    }
}

// A block's shared memory for a picture with few candidates.
struct few {
    uint64_t keys[DETECT_FEW];
    float x1[DETECT_FEW], y1[DETECT_FEW], x2[DETECT_FEW], y2[DETECT_FEW], area[DETECT_FEW];
    int32_t label[DETECT_FEW], kept[DETECT_FEW];
};

static __device__ inline void picture_move(struct detect_picture *p, struct few *few)
{
    p->sorted = few->keys;
    p->boxes.x1 = few->x1;
    p->boxes.y1 = few->y1;
    p->boxes.x2 = few->x2;
    p->boxes.y2 = few->y2;
    p->boxes.area = few->area;
    p->boxes.label = few->label;
    p->kept = few->kept;
}

static __global__ void __launch_bounds__(FINISH_THREADS, FINISH_BLOCKS)
    detect_finish(const __grid_constant__ struct detect_batch batch)
{
    __shared__ struct few few;
    __shared__ struct meeting meet;
    __shared__ uint32_t gone[GONE_WORDS];
    const struct detect *d = batch.detect;
    const struct detect_input *in = &batch.in[blockIdx.x];
    const bool softly = d->params.suppression == DETECT_SOFT;
    struct detect_picture p = picture_at(&batch, blockIdx.x);
    previous_kernel_wait();
    const uint32_t n = p.counts[COUNT_CANDIDATES], cut = batch.layout.cut;
    const int m = (int)(n < cut ? n : cut);
    if (m <= DETECT_FEW)
        picture_move(&p, &few);
    keys_sort(p.sorted, p.keys, n, m, &meet);
    for (int i = threadIdx.x; i < m; i += FINISH_THREADS) {
        if (!boxes_set(&p.boxes, i, d, in, p.sorted[i]))
            atomicAdd(&p.counts[COUNT_DROPPED], 1u);
        if (softly)
            p.scores[i] = key_score(p.sorted[i]);
    }
    __syncthreads();
    int count;
    if (softly) {
        count = suppress_softly(d, &p, m);
    } else {
        gone_init(gone, &p.boxes, m);
        count = keep(gone, d, &p, m);
    }
    result_write(&batch, blockIdx.x, &p, count);
}

#endif
