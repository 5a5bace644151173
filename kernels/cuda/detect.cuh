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

#include "kernels/detect_overlap.h"

enum {
    DETECT_BATCH = 32,  // pictures of a launch
    SCAN_THREADS = 256, // of which
    SCAN_ANCHORS = 64,  // have an anchor of their own, and so many share it:
    SCAN_SHARES = SCAN_THREADS / SCAN_ANCHORS,
    LANES_OF_WARP = 32,
#ifdef __CUDACC__
    DETECT_FEW = 1024, // candidates that a block suppresses by itself
    FINISH_THREADS = 512,
#else // on the host threads are slow, and many candidates are rare
    DETECT_FEW = 96,
    FINISH_THREADS = 64,
#endif
    TILE = 64, // boxes
    MASK_THREADS = 256,
    GONE_WORDS = DETECT_CANDIDATES_CUDA / LANES_OF_WARP,
};

enum { COUNT_CANDIDATES, COUNT_DROPPED, COUNT_MANY, COUNTS };

// Where the parts of a picture's memory lie, from its start.
struct detect_layout {
    size_t keys, sorted, floats[5], label, quad, scores, kept, mask, bytes;
    int cut, words; // candidates that go on; words of a mask's row
};

struct detect_picture {
    uint32_t *counts;
    uint64_t *keys, *sorted, *mask;
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
    l.words = (l.cut + TILE - 1) / TILE;
    size_t padded = TILE; // to a power of two, for the sort
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
    l.mask = layout_take(&l, l.cut > DETECT_FEW ? (size_t)l.cut * l.words * sizeof(uint64_t) : 0);
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
    picture.mask = (uint64_t *)(base + l->mask);
    return picture;
}

// --- scan

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

#endif
