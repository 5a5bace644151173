// The kernels of detection, in this order:
//   detect_scan    all anchors of all pictures: candidates as keys, where an atomic counter says;
//                  the order is made later, so that it means nothing
//   detect_finish  a block a picture: sorts, makes boxes and, of few candidates, suppresses row by
//                  row and writes the result
// and only where there may be many:
//   detect_mask    of pictures with many, which box suppresses which, 64 x 64 at a time
//   detect_walk    a block a picture: who is kept by these masks, and the result
// What a picture has in device memory is reset by the last kernel that reads it, for the next
// batch.
#ifndef FRAMED_KERNELS_CUDA_DETECT_CUH
#define FRAMED_KERNELS_CUDA_DETECT_CUH

#include "kernels/cuda/detect_scan.cuh"

// --- finish

// The largest of the `wanted` first keys of n, digit by digit from the highest.
static __device__ inline uint64_t keys_bound(const uint64_t *keys, uint32_t n, uint32_t wanted)
{
    __shared__ uint32_t bins[256];
    __shared__ uint64_t bound;
    __shared__ uint32_t left;
    if (threadIdx.x == 0) {
        bound = 0;
        left = wanted;
    }
    for (int shift = 56; shift >= 0; shift -= 8) {
        for (int i = threadIdx.x; i < 256; i += FINISH_THREADS)
            bins[i] = 0;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < n; i += FINISH_THREADS)
            if (shift == 56 || keys[i] >> (shift + 8) == bound >> (shift + 8))
                atomicAdd(&bins[keys[i] >> shift & 255], 1u);
        __syncthreads();
        if (threadIdx.x == 0) {
            int digit = 0;
            for (; bins[digit] < left; digit++)
                left -= bins[digit];
            bound |= (uint64_t)digit << shift;
        }
        __syncthreads();
    }
    return bound;
}

// Sorts the best `cut` of n keys to `to`, which has room for a power of two. Returns how many.
static __device__ inline int keys_sort(uint64_t *to, const uint64_t *keys, uint32_t n, uint32_t cut)
{
    __shared__ uint32_t taken;
    const uint32_t m = n < cut ? n : cut;
    uint32_t padded = 2;
    while (padded < m)
        padded *= 2;
    if (n > cut) {
        const uint64_t bound = keys_bound(keys, n, cut);
        if (threadIdx.x == 0)
            taken = 0;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < n; i += FINISH_THREADS)
            if (keys[i] <= bound)
                to[atomicAdd(&taken, 1u)] = keys[i];
    } else {
        for (uint32_t i = threadIdx.x; i < n; i += FINISH_THREADS)
            to[i] = keys[i];
    }
    for (uint32_t i = m + threadIdx.x; i < padded; i += FINISH_THREADS)
        to[i] = ~(uint64_t)0;
    for (uint32_t run = 2; run <= padded; run *= 2)
        for (uint32_t apart = run / 2; apart > 0; apart /= 2) {
            __syncthreads();
            for (uint32_t i = threadIdx.x; i < padded / 2; i += FINISH_THREADS) {
                const uint32_t a = i / apart * 2 * apart + i % apart, b = a + apart;
                const uint64_t x = to[a], y = to[b];
                if ((x > y) == ((a & run) == 0)) {
                    to[a] = y;
                    to[b] = x;
                }
            }
        }
    __syncthreads();
    return (int)m;
}

// The next place from i on that has no bit set in `gone`; m: none.
static __device__ inline int place_next(const uint32_t *gone, int i, int m)
{
    while (i < m) {
        const uint32_t left = ~gone[i / LANES_OF_WARP] >> i % LANES_OF_WARP;
        if (left != 0)
            return i + __ffs((int)left) - 1;
        i = (i / LANES_OF_WARP + 1) * LANES_OF_WARP;
    }
    return m;
}

// Sets the bits of boxes that have none, and behind the last.
static __device__ inline void gone_init(uint32_t *gone, const struct detect_boxes *boxes, int m)
{
    for (int at = threadIdx.x / LANES_OF_WARP; at * LANES_OF_WARP < m;
         at += FINISH_THREADS / LANES_OF_WARP) {
        const int i = at * LANES_OF_WARP + (int)(threadIdx.x % LANES_OF_WARP);
        const unsigned bits = __ballot_sync(~0u, i >= m || boxes->label[i] == LABEL_GONE);
        if (threadIdx.x % LANES_OF_WARP == 0)
            gone[at] = bits;
    }
    __syncthreads();
}

// Box i suppresses what is behind it.
static __device__ inline void row_suppress(uint32_t *gone, const struct detect *d,
                                           const struct detect_boxes *boxes, int i, int m)
{
    const int lane = threadIdx.x % LANES_OF_WARP;
    for (int at = i / LANES_OF_WARP + (int)(threadIdx.x / LANES_OF_WARP); at * LANES_OF_WARP < m;
         at += FINISH_THREADS / LANES_OF_WARP) {
        const int j = at * LANES_OF_WARP + lane;
        const bool there = j < m && j > i && !(gone[at] >> lane & 1);
        const unsigned bits = __ballot_sync(~0u, there && suppresses(d, boxes, i, j));
        if (lane == 0)
            gone[at] |= bits;
    }
}

// Each box goes that any before it suppresses.
static __device__ inline void suppress_fast(uint32_t *gone, const struct detect *d,
                                            const struct detect_boxes *boxes, int m)
{
    const int lane = threadIdx.x % LANES_OF_WARP;
    for (int at = threadIdx.x / LANES_OF_WARP; at * LANES_OF_WARP < m;
         at += FINISH_THREADS / LANES_OF_WARP) {
        const int j = at * LANES_OF_WARP + lane;
        bool hit = false;
        if (j < m && boxes->label[j] != LABEL_GONE)
            for (int i = 0; i < j && !hit; i++)
                hit = suppresses(d, boxes, i, j);
        const unsigned bits = __ballot_sync(~0u, hit);
        if (lane == 0)
            gone[at] |= bits;
    }
    __syncthreads();
}

static __device__ inline int suppress_softly(const struct detect *d, struct detect_picture *p,
                                             int m)
{
    __shared__ unsigned long long best_key;
    const struct detect_boxes *b = &p->boxes;
    int count = 0;
    for (; count < d->params.max_det; count++) {
        if (threadIdx.x == 0)
            best_key = ~0ull;
        __syncthreads();
        unsigned long long mine = ~0ull;
        for (int i = threadIdx.x; i < m; i += FINISH_THREADS) {
            const unsigned long long key = (unsigned long long)score_order(p->scores[i]) << 32 | i;
            if (b->label[i] != LABEL_GONE && key < mine)
                mine = key;
        }
        if (mine != ~0ull)
            atomicMin(&best_key, mine);
        __syncthreads();
        const unsigned long long key = best_key;
        if (key == ~0ull)
            break;
        const int best = (int)(uint32_t)key, label = b->label[best];
        for (int i = threadIdx.x; i < m; i += FINISH_THREADS) {
            if (i == best || b->label[i] != label)
                continue;
            const float overlap =
                best < i ? quotient_of(d, b, best, i) : quotient_of(d, b, i, best);
            if (overlap > d->overlap)
                p->scores[i] *= 1 - overlap;
            if (overlap > d->overlap && !(p->scores[i] > d->params.soft_floor))
                b->label[i] = LABEL_GONE;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            p->kept[count] = best;
            b->label[best] = LABEL_GONE;
        }
    }
    __syncthreads();
    return count;
}

// The places that are kept. Called with `gone` ready in all threads.
static __device__ inline int keep(uint32_t *gone, const struct detect *d, struct detect_picture *p,
                                  int m)
{
    const bool greedy = d->params.suppression == DETECT_GREEDY;
    int count = 0;
    if (d->params.suppression == DETECT_FAST)
        suppress_fast(gone, d, &p->boxes, m);
    for (int i = place_next(gone, 0, m); i < m && count < d->params.max_det;
         i = place_next(gone, i + 1, m)) {
        if (threadIdx.x == 0)
            p->kept[count] = i;
        count++;
        if (greedy) {
            __syncthreads();
            row_suppress(gone, d, &p->boxes, i, m);
            __syncthreads();
        }
    }
    __syncthreads();
    return count;
}

// 32 bytes in two stores: the result may lie behind a bus.
static __device__ inline void words_store(void *to, const void *from)
{
    uint4 words[2];
    memcpy(words, from, sizeof words);
    ((uint4 *)to)[0] = words[0];
    ((uint4 *)to)[1] = words[1];
}

// The result of a picture, and its counters as the next batch wants them.
static __device__ inline void result_write(const struct detect_batch *batch, int picture,
                                           struct detect_picture *p, const uint64_t *keys,
                                           int count)
{
    const struct detect *d = batch->detect;
    const struct detect_input *in = &batch->in[picture];
    struct detect_result *result =
        (struct detect_result *)(batch->results + (size_t)picture * batch->result_bytes);
    for (int i = threadIdx.x; i < count; i += FINISH_THREADS) {
        float corners[8];
        const struct detection found =
            detection_of(d, in, keys[p->kept[i]], p->scores[p->kept[i]], corners);
        words_store(detect_found(result) + i, &found);
        if (d->params.quads)
            words_store(detect_quads(d, result) + 8 * (size_t)i, corners);
    }
    for (int i = threadIdx.x; i < count * d->extra; i += FINISH_THREADS)
        extra_write(d, in, result, i / d->extra, key_anchor(keys[p->kept[i / d->extra]]),
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

static __global__ void __launch_bounds__(FINISH_THREADS)
    detect_finish(const __grid_constant__ struct detect_batch batch)
{
    __shared__ uint64_t few[DETECT_FEW];
    __shared__ uint32_t gone[GONE_WORDS];
    const struct detect *d = batch.detect;
    const struct detect_input *in = &batch.in[blockIdx.x];
    struct detect_picture p = picture_at(&batch, blockIdx.x);
    const uint32_t n = p.counts[COUNT_CANDIDATES], cut = batch.layout.cut;
    uint64_t *keys = (n < cut ? n : cut) <= DETECT_FEW ? few : p.sorted;
    const int m = keys_sort(keys, p.keys, n, cut);
    for (int i = threadIdx.x; i < m; i += FINISH_THREADS) {
        if (!boxes_set(&p.boxes, i, d, in, keys[i]))
            atomicAdd(&p.counts[COUNT_DROPPED], 1u);
        p.scores[i] = key_score(keys[i]);
    }
    __syncthreads();
    if (m > DETECT_FEW && d->params.suppression <= DETECT_FAST) {
        if (threadIdx.x == 0)
            p.counts[COUNT_MANY] = m;
        return;
    }
    int count;
    if (d->params.suppression == DETECT_SOFT) {
        count = suppress_softly(d, &p, m);
    } else {
        gone_init(gone, &p.boxes, m);
        count = keep(gone, d, &p, m);
    }
    result_write(&batch, blockIdx.x, &p, keys, count);
}

// --- many

static __device__ inline int tiles_of(int m)
{
    const int side = (m + TILE - 1) / TILE;
    return side * (side + 1) / 2;
}

// Row i of tile `tile`, of those on and above the diagonal: which of the 64 boxes it suppresses.
static __device__ inline void mask_row(const struct detect *d, const struct detect_picture *p,
                                       int words, int m, int tile, int thread)
{
    int row = 0;
    const int side = (m + TILE - 1) / TILE;
    for (; tile >= side - row; row++)
        tile -= side - row;
    const int i = row * TILE + thread, first = (row + tile) * TILE;
    if (i >= m)
        return;
    uint64_t bits = 0;
    for (int j = first > i ? first : i + 1; j < first + TILE && j < m; j++)
        if (suppresses(d, &p->boxes, i, j))
            bits |= (uint64_t)1 << (j - first);
    p->mask[(size_t)i * words + row + tile] = bits;
}

// Any number of blocks, which share the tiles of all pictures.
static __global__ void detect_mask(const __grid_constant__ struct detect_batch batch)
{
    __shared__ int many[DETECT_BATCH];
    if (threadIdx.x < DETECT_BATCH)
        many[threadIdx.x] = (int)threadIdx.x < batch.n
                                ? (int)picture_at(&batch, threadIdx.x).counts[COUNT_MANY]
                                : 0;
    __syncthreads();
    int tile = blockIdx.x * (MASK_THREADS / TILE) + threadIdx.x / TILE;
    const int step = gridDim.x * (MASK_THREADS / TILE);
    for (int i = 0; i < batch.n; i++) {
        const struct detect_picture p = picture_at(&batch, i);
        const int tiles = tiles_of(many[i]);
        for (; tile < tiles; tile += step)
            mask_row(batch.detect, &p, batch.layout.words, many[i], tile, threadIdx.x % TILE);
        tile -= tiles;
    }
}

static __global__ void __launch_bounds__(FINISH_THREADS)
    detect_walk(const __grid_constant__ struct detect_batch batch)
{
    __shared__ uint32_t gone[GONE_WORDS];
    const struct detect *d = batch.detect;
    struct detect_picture p = picture_at(&batch, blockIdx.x);
    const int m = p.counts[COUNT_MANY], words = batch.layout.words;
    const bool fast = d->params.suppression == DETECT_FAST;
    if (m == 0)
        return;
    gone_init(gone, &p.boxes, m);
    int count = 0;
    for (int w = threadIdx.x; fast && w < (m + TILE - 1) / TILE; w += FINISH_THREADS) {
        uint64_t bits = 0;
        for (int i = 0; i < m && i < (w + 1) * TILE; i++)
            bits |= p.mask[(size_t)i * words + w];
        gone[2 * w] |= (uint32_t)bits;
        gone[2 * w + 1] |= (uint32_t)(bits >> 32);
    }
    __syncthreads();
    for (int i = place_next(gone, 0, m); i < m && count < d->params.max_det;
         i = place_next(gone, i + 1, m)) {
        if (threadIdx.x == 0)
            p.kept[count] = i;
        count++;
        if (fast)
            continue;
        __syncthreads();
        for (int w = i / TILE + (int)threadIdx.x; w < (m + TILE - 1) / TILE; w += FINISH_THREADS) {
            const uint64_t bits = p.mask[(size_t)i * words + w];
            gone[2 * w] |= (uint32_t)bits;
            gone[2 * w + 1] |= (uint32_t)(bits >> 32);
        }
        __syncthreads();
    }
    __syncthreads();
    result_write(&batch, blockIdx.x, &p, p.sorted, count);
}

// Each type of scores has a scan of its own, and so have scores that are taken as they are.
typedef void scan_fn(struct detect_batch);

template <int DTYPE> static scan_fn *scan_of(bool plain)
{
    return plain ? detect_scan<DTYPE, true> : detect_scan<DTYPE, false>;
}

static scan_fn *scan_for(const struct detect *d)
{
    const bool plain = d->params.activation == DETECT_PLAIN && !d->objectness;
    switch (d->params.format[d->score_tensor].dtype) {
    case DETECT_F16:
        return scan_of<DETECT_F16>(plain);
    case DETECT_BF16:
        return scan_of<DETECT_BF16>(plain);
    case DETECT_S8:
        return scan_of<DETECT_S8>(plain);
    case DETECT_U8:
        return scan_of<DETECT_U8>(plain);
    default:
        return scan_of<DETECT_F32>(plain);
    }
}

#endif
