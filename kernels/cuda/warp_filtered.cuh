// Warps with a filter that weights all samples under an output pixel, where the output's x is the
// source's. A block makes COLUMN_THREADS columns of some output rows. First its threads sum the
// source columns that these pixels read (filter_columns.cuh); then each makes the pixels of one
// output column from these sums, with its weights in registers. Rows that see nothing of the
// picture are stored as bars.
#ifndef FRAMED_KERNELS_CUDA_WARP_FILTERED_CUH
#define FRAMED_KERNELS_CUDA_WARP_FILTERED_CUH

#include "kernels/cuda/filter_columns.cuh"
#include "kernels/cuda/warp_axis.cuh"

enum {
    FILTERED_ROWS = 8,  // per block, at most
    FILTERED_PAIRS = 4, // of weights, in a thread's registers
    FILTERED_RESIDENT = 6,
};

// Returns how many output rows a block can sum, at most FILTERED_ROWS, or 0 if the kernel cannot
// make the op of this source.
static inline int filtered_rows(const struct warp *warp, const struct image *src)
{
    const struct filter_tables *f = &warp->filtered;
    if (!filter_weighs(warp->filter) || f->turned || warp->lut)
        return 0;
    if (!source_is_rgb(warp->source) && !sums_are_exact(&warp->rgb))
        return 0;
    for (int i = 0; i < pixel_format_planes(warp->source); i++)
        if (src->plane[i].stride != (int32_t)src->plane[i].stride)
            return 0;
    int rows = FILTERED_ROWS;
    const struct interval seen = range_seen(f->coverage_x, 0, warp->width);
    for (int x = 0; x < warp->width; x += COLUMN_THREADS) {
        const int x0 = x > seen.from ? x : seen.from;
        const int x1 = x + COLUMN_THREADS < seen.to ? x + COLUMN_THREADS : seen.to;
        if (x0 >= x1)
            continue;
        const int words = run_of(warp, warp->source, x0, x1).pitch; // 0: chroma of a gray source
        if (words * rows > COLUMN_WORDS)
            rows = COLUMN_WORDS / words;
    }
    return rows;
}

// --- horizontal

// The weights of one output column: the first pair of samples that it reads, and the weights of
// pairs from there on. The first and the last pair may weight only one sample.
struct taps_run {
    int first, pairs;
    unsigned shift; // of weights: 16 if the first pair's first sample is not read, else 0
    unsigned pair[FILTERED_PAIRS];
    const unsigned *weights; // of the axis, two per word
    int words;               // number of words in `weights`
};

// Returns the weights of pair i; `before`: the axis' word i - 1.
static __device__ inline unsigned pair_of(const struct taps_run *taps, int i, unsigned *before)
{
    const unsigned word = i < taps->words ? __ldg(taps->weights + i) : 0;
    const unsigned pair = __funnelshift_l(*before, word, taps->shift);
    *before = word;
    return pair;
}

static __device__ inline struct taps_run taps_load(const struct filter_axis *axis, int x)
{
    const struct filter_span span = axis->spans[x];
    struct taps_run taps;
    taps.first = span.first / 2;
    taps.shift = 16 * (span.first % 2);
    taps.pairs = (span.first % 2 + span.count + 1) / 2;
    taps.words = axis->stride / 2;
    taps.weights = (const unsigned *)(axis->weights + (ptrdiff_t)x * axis->stride);
    const uint4 word = __ldg((const uint4 *)taps.weights);
    taps.pair[0] = __funnelshift_l(0, word.x, taps.shift);
    taps.pair[1] = __funnelshift_l(word.x, word.y, taps.shift);
    taps.pair[2] = __funnelshift_l(word.y, word.z, taps.shift);
    taps.pair[3] = __funnelshift_l(word.z, word.w, taps.shift);
    return taps;
}

// Loads the sums of a pair of samples of components [first, end) of a row.
template <enum pixel_format FORMAT>
static __device__ inline void pair_load(const uint32_t *row, const struct run *run, int first,
                                        int end, int pair, unsigned word[3])
{
    const struct component k = component_of(FORMAT, first);
    const uint32_t *at = row + run->plane[k.plane].words;
    if (FORMAT == PIXEL_BGRA || FORMAT == PIXEL_RGBA) {
        const uint4 v = *(const uint4 *)(at + 4 * pair);
        word[0] = FORMAT == PIXEL_BGRA ? v.z : v.x;
        word[1] = v.y;
        word[2] = FORMAT == PIXEL_BGRA ? v.x : v.z;
    } else if (first == 1 && k.plane == component_of(FORMAT, 2).plane) { // U and V side by side
        const int u = column_word<FORMAT>(1, pair), v = column_word<FORMAT>(2, pair);
        const uint2 both = *(const uint2 *)(at + (u < v ? u : v));
        word[1] = u < v ? both.x : both.y;
        word[2] = u < v ? both.y : both.x;
    } else {
#pragma unroll
        for (int c = first; c < end; c++)
            word[c] =
                row[run->plane[component_of(FORMAT, c).plane].words + column_word<FORMAT>(c, pair)];
    }
}

// Makes samples of components [first, end), which have the same taps: 7 fraction bits centred on
// 128. `origin`: the first pair in a row of sums.
template <enum pixel_format FORMAT>
static __device__ inline void samples_make(const uint32_t *row, const struct run *run, int first,
                                           int end, const struct taps_run *taps, int origin,
                                           int sample[3])
{
    // Sums of low and of high bytes. They start with filtered_row's rounding, and centre the sums.
    unsigned low[3], high[3], word[3];
#pragma unroll
    for (int c = first; c < end; c++) {
        low[c] = WEIGHT_ONE / 2 - (16384u << WEIGHT_BITS);
        high[c] = 0;
    }
#pragma unroll
    for (int i = 0; i < FILTERED_PAIRS; i++) {
        if (i >= taps->pairs)
            break;
        pair_load<FORMAT>(row, run, first, end, taps->first - origin + i, word);
#pragma unroll
        for (int c = first; c < end; c++) {
            low[c] = __dp2a_lo(taps->pair[i], word[c], low[c]);
            high[c] = __dp2a_hi(taps->pair[i], word[c], high[c]);
        }
    }
    if (taps->pairs > FILTERED_PAIRS) {
        unsigned before = __ldg(taps->weights + FILTERED_PAIRS - 1);
        for (int i = FILTERED_PAIRS; i < taps->pairs; i++) {
            const unsigned weights = pair_of(taps, i, &before);
            pair_load<FORMAT>(row, run, first, end, taps->first - origin + i, word);
#pragma unroll
            for (int c = first; c < end; c++) {
                low[c] = __dp2a_lo(weights, word[c], low[c]);
                high[c] = __dp2a_hi(weights, word[c], high[c]);
            }
        }
    }
#pragma unroll
    for (int c = first; c < end; c++)
        sample[c] = (int)(low[c] + (high[c] << 8)) >> WEIGHT_BITS;
}

// Makes levels with 21 fraction bits from samples, rounding term included: R, G, B or only gray, or
// samples that keep their values.
template <enum pixel_format FORMAT, bool KEPT>
static __device__ inline void levels21(const struct axis_item *item, const int sample[3],
                                       int level21[3])
{
    const bool gray = item->flags & AXIS_GRAY;
    if (source_is_rgb(FORMAT)) {
        for (int c = 0; c < 3; c++)
            level21[c] = (sample[c] + 1 + 2 * (128 * 64 + LEVEL6_HALF)) << 14;
        const struct rgb6 q = {level21[0] >> 15, level21[1] >> 15, level21[2] >> 15};
        if (gray)
            level21[0] = gray6(q, item->gray) << 15;
    } else if (KEPT) {
        const bool alone = item->flags & AXIS_CHROMA;
        for (int c = 0; c < 3; c++)
            level21[c] = sample[alone ? (c + 1) % 3 : c] * item->luma + item->round;
    } else {
        const int luma = sample[0] * item->luma + item->round;
        if (gray || !source_has_chroma(FORMAT))
            level21[0] = level21[1] = level21[2] = luma;
        else
            rgb21_of_yuv(item, luma, sample[1], sample[2], level21);
    }
}

// Makes the elements of one pixel: R, G, B, or the components of the samples.
template <enum pixel_format FORMAT, typename T, bool KEPT>
static __device__ inline void elements_make(const struct axis_item *item, const T *table,
                                            const int sample[3], int coverage, T element[3])
{
    const bool bgr = item->flags & AXIS_BGR;
    int level[3];
    levels21<FORMAT, KEPT>(item, sample, level);
#pragma unroll
    for (int c = 0; c < 3; c++) {
        const int channel = bgr ? 2 - c : c;
        level[c] = coverage == WEIGHT_ONE
                       ? level[c] >> 21
                       : level_blended(level[c] >> 15, item->fill[channel], coverage);
        level[c] = __vimin_s32_relu(level[c], 255);
        element[c] = (T)level[c];
        if (sizeof(T) > 1 || item->flags & AXIS_LOOKUP)
            element[c] = table[256 * channel + level[c]];
    }
}

template <typename T, bool KEPT>
static __device__ inline void pixel_store(const struct axis_item *item, T *to, const T element[3])
{
    const bool bgr = item->flags & AXIS_BGR;
    const ptrdiff_t step = item->flags & AXIS_PACKED ? 1 : (ptrdiff_t)item->width * item->height;
#pragma unroll
    for (int c = 0; c < 3; c++) {
        if (c > 0 && item->flags & AXIS_GRAY)
            break;
        if (KEPT && c > 1 && item->flags & AXIS_CHROMA)
            break;
        to[(bgr ? 2 - c : c) * step] = element[c];
    }
}

// --- the kernel

// Makes the pixels of column x, rows [y, end), from their rows of sums.
template <enum pixel_format FORMAT, typename T, bool KEPT>
static __device__ inline void column_make(const struct axis_item *item, const struct warp *warp,
                                          const T *table, const struct run *run,
                                          const uint32_t *sums, int x, int y, int end)
{
    const struct filter_tables *f = &warp->filtered;
    const bool bgr = item->flags & AXIS_BGR;
    const bool luma = !(KEPT && item->flags & AXIS_CHROMA);
    const bool chroma = source_has_chroma(FORMAT) && !(item->flags & AXIS_GRAY);
    const int across = f->coverage_x[x];
    struct taps_run luma_taps = {}, chroma_taps = {};
    if (luma)
        luma_taps = taps_load(&f->luma_x, x);
    if (chroma)
        chroma_taps = taps_load(&f->chroma_x, x);
    const int luma_origin =
        run->plane[component_of(FORMAT, 0).plane].first / (2 * component_of(FORMAT, 0).step);
    const int chroma_origin =
        source_has_chroma(FORMAT)
            ? run->plane[component_of(FORMAT, 1).plane].first / (2 * component_of(FORMAT, 1).step)
            : 0;
    const int packed = axis_packed<KEPT>(item);
    T *to = (T *)item->dst + ((ptrdiff_t)y * item->width + x) * packed;
    for (; y < end; y++, to += item->width * packed, sums += run->pitch) {
        T element[3];
#pragma unroll
        for (int c = 0; c < 3; c++)
            element[c] = (T)item->element[bgr ? 2 - c : c];
        if (across > 0) {
            int sample[3] = {0, 0, 0};
            if (source_is_rgb(FORMAT))
                samples_make<FORMAT>(sums, run, 0, 3, &luma_taps, luma_origin, sample);
            else if (luma)
                samples_make<FORMAT>(sums, run, 0, 1, &luma_taps, luma_origin, sample);
            if (chroma)
                samples_make<FORMAT>(sums, run, 1, 3, &chroma_taps, chroma_origin, sample);
            elements_make<FORMAT, T, KEPT>(item, table, sample,
                                           coverage_of(across, f->coverage_y[y]), element);
        }
        pixel_store<T, KEPT>(item, to, element);
    }
}

// A block makes COLUMN_THREADS pixels of `rows` rows. Blocks from blockIdx.y == bars on share the
// item's bars instead. KEPT: samples keep their values; T is a byte.
template <enum pixel_format FORMAT, typename T, bool KEPT = false>
static __global__ void __launch_bounds__(COLUMN_THREADS, FILTERED_RESIDENT)
    warp_filtered(const __grid_constant__ struct axis_batch batch, int rows, unsigned bars)
{
    __shared__ uint4 sums[COLUMN_WORDS / 4];
    __shared__ T table[3 * 256];
    const struct axis_item *item = &batch.item[blockIdx.z];
    if (blockIdx.y >= bars) {
        const unsigned block = (blockIdx.y - bars) * gridDim.x + blockIdx.x;
        const unsigned thread = block * COLUMN_THREADS + threadIdx.x;
        const unsigned threads = (gridDim.y - bars) * gridDim.x * COLUMN_THREADS;
        bar_store<T, KEPT>(item, item->y0, item->top, thread, threads);
        bar_store<T, KEPT>(item, item->bottom, item->y1, thread, threads);
        return;
    }
    const int begin = blockIdx.x * COLUMN_THREADS, x = begin + threadIdx.x;
    const int y = item->top + blockIdx.y * rows, end = min(y + rows, item->bottom);
    if (y >= end || begin >= item->width)
        return;
    if (sizeof(T) > 1 || item->flags & AXIS_LOOKUP)
        for (int i = threadIdx.x; i < 3 * 256; i += COLUMN_THREADS)
            table[i] = ((const T *)item->table)[i];

    const struct warp *__restrict__ warp = item_warp(item);
    const int x0 = begin > item->seen.left ? begin : item->seen.left;
    const int x1 = min(begin + COLUMN_THREADS, item->seen.right);
    struct run run = {};
    if (x0 < x1) {
        run = run_of(warp, FORMAT, x0, x1);
        columns_make<FORMAT>(item, warp, &run, y, end - y, (uint32_t *)sums);
    }
    __syncthreads();
    if (x < item->width)
        column_make<FORMAT, T, KEPT>(item, warp, table, &run, (const uint32_t *)sums, x, y, end);
}

#endif
