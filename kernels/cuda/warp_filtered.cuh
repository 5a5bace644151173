// Warps with a filter that weights all samples under an output pixel, where the output's x is the
// source's. A block makes COLUMN_THREADS columns of some output rows. First its threads sum the
// source columns that these pixels read; then each makes the pixels of one output column from these
// sums, with its weights in registers. Rows that see nothing of the picture are stored as bars.
#ifndef FRAMED_KERNELS_CUDA_WARP_FILTERED_CUH
#define FRAMED_KERNELS_CUDA_WARP_FILTERED_CUH

#include "kernels/cuda/warp_axis.cuh"

// --- the first of a filter's two passes
//
// For some output rows, sums the source columns that a run of their pixels reads, into shared
// memory.
//
// It sums a plane byte by byte, whatever its samples are, in groups of 16 or 24 bytes that a thread
// loads as words. It takes two rows at a time, with their bytes interleaved and multiplied by their
// two weights (dp2a). Weights are shifted up to 15 bits, so that the rounded sum of a column of
// 8-bit samples, which has 7 fraction bits, is bytes 1 and 2 of the sum. Samples of 10 bits are
// loaded as 64 times their value: their sum, the low bytes' plus 256 times the high bytes', has the
// result in bytes 2 and 3.
//
// Two neighbours s, t of a component become one word: the low bytes of s and t, then the high ones,
// which the second pass multiplies by pairs of weights in the same way. In shared memory a row's
// planes follow each other, and words of a plane's components alternate (column_word).

enum {
    COLUMN_THREADS = 128,
    COLUMN_WORDS = 6144, // for the sums of a block
    GROUP_MAX = 24,
};

// --- columns, and the places of their sums

static FRAMED_HD constexpr bool is_packed_422(enum pixel_format format)
{
    return format == PIXEL_YUYV422 || format == PIXEL_UYVY422;
}

// Returns the bytes of a group: whole pairs of each component.
static FRAMED_HD constexpr int group_bytes(enum pixel_format format)
{
    return format == PIXEL_BGR24 || format == PIXEL_RGB24 ? 24 : 16;
}

static inline FRAMED_HD int sample_bytes(enum pixel_format format)
{
    return source_is_10bit(format) ? 2 : 1;
}

// Returns the words of a group's sums.
static inline FRAMED_HD int group_words(enum pixel_format format)
{
    return group_bytes(format) / sample_bytes(format) / 2;
}

// The part of a plane that a run reads: groups from byte `first` of its rows on; `words`: offset of
// their sums in an output row's sums.
struct plane_run {
    int first, groups, words;
};

struct run {
    struct plane_run plane[PLANES_MAX];
    int pitch; // words per output row
};

// Returns the samples that entries [x0, x1) of the axis read; the first and the last entry must
// read some. Spans are monotone.
static inline FRAMED_HD struct interval samples_of(const struct filter_axis *axis, int x0, int x1)
{
    const struct filter_span a = axis->spans[x0], b = axis->spans[x1 - 1];
    const int a_end = a.first + a.count, b_end = b.first + b.count;
    return {a.first < b.first ? a.first : b.first, a_end > b_end ? a_end : b_end};
}

// Returns the bytes of a plane's row that hold these samples of luma (or RGB) and chroma.
static inline FRAMED_HD struct interval bytes_of(const struct warp *warp, enum pixel_format format,
                                                 int plane, struct interval luma,
                                                 struct interval chroma)
{
    struct interval bytes = {0, 0};
    for (int c = 0; c < 3; c++) {
        const struct component k = component_of(format, c);
        const struct interval samples = c == 0 || source_is_rgb(format) ? luma : chroma;
        if (k.plane != plane || c < components_first(warp) || c >= components_end(warp, format))
            continue;
        const int from = samples.from * k.step, to = samples.to * k.step;
        bytes.from = bytes.to == 0 || from < bytes.from ? from : bytes.from;
        bytes.to = to > bytes.to ? to : bytes.to;
    }
    return bytes;
}

// Returns the run of output columns [x0, x1); the first and the last must see some of the picture.
static inline FRAMED_HD struct run run_of(const struct warp *warp, enum pixel_format format, int x0,
                                          int x1)
{
    const int group = group_bytes(format);
    const struct interval luma = samples_of(&warp->filtered.luma_x, x0, x1);
    const struct interval chroma =
        source_has_chroma(format) ? samples_of(&warp->filtered.chroma_x, x0, x1) : luma;
    struct run run;
    run.pitch = 0;
    for (int i = 0; i < PLANES_MAX; i++) {
        const struct interval bytes = bytes_of(warp, format, i, luma, chroma);
        const int first = bytes.from / group, end = (bytes.to + group - 1) / group;
        run.plane[i] = {first * group, end - first, run.pitch};
        run.pitch += (end - first) * group_words(format);
    }
    return run;
}

// Returns the words from the start of a plane's sums to the pair of samples 2 * pair and 2 * pair +
// 1 of component c, counted from the plane's first byte.
template <enum pixel_format FORMAT> static __device__ inline int column_word(int c, int pair)
{
    const struct component k = component_of(FORMAT, c);
    if (is_packed_422(FORMAT)) // groups of Y, Y, U, V
        return c == 0 ? 2 * pair - pair % 2 : 4 * pair + 1 + c;
    return (pair * k.step + k.offset) / sample_bytes(FORMAT);
}

// --- loads

// Loads the bytes of a group that lie in `window`, one by one; the others are 0.
template <enum pixel_format FORMAT>
static __device__ inline void bytes_load(const uint8_t *at, int first, struct interval window,
                                         unsigned word[GROUP_MAX / 4])
{
#pragma unroll
    for (int i = 0; i < group_bytes(FORMAT) / 4; i++) {
        word[i] = 0;
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (first + 4 * i + k >= window.from && first + 4 * i + k < window.to)
                word[i] |= (unsigned)__ldg(at + 4 * i + k) << 8 * k;
    }
}

template <enum pixel_format FORMAT>
static __device__ inline void words_load(const uint8_t *at, unsigned word[GROUP_MAX / 4])
{
    if (group_bytes(FORMAT) == 16) {
        const uint4 v = __ldg((const uint4 *)at);
        word[0] = v.x;
        word[1] = v.y;
        word[2] = v.z;
        word[3] = v.w;
    } else {
#pragma unroll
        for (int i = 0; i < 3; i++) {
            const uint2 v = __ldg((const uint2 *)at + i);
            word[2 * i] = v.x;
            word[2 * i + 1] = v.y;
        }
    }
}

static FRAMED_HD constexpr int group_alignment(enum pixel_format format)
{
    return group_bytes(format) == 16 ? 16 : 8;
}

// Loads one row's bytes of a group, which begins at byte `first` of the row. WIDE: it is aligned,
// and all of it is in the window.
template <enum pixel_format FORMAT, bool WIDE>
static __device__ inline void group_load(const uint8_t *at, int first, struct interval window,
                                         unsigned word[GROUP_MAX / 4])
{
    if (WIDE)
        words_load<FORMAT>(at, word);
    else
        bytes_load<FORMAT>(at, first, window, word);
    if (source_is_10bit(FORMAT))
#pragma unroll
        for (int i = 0; i < group_bytes(FORMAT) / 4; i++)
            word[i] = (FORMAT == PIXEL_P010 ? word[i] : word[i] << 6) & 0xffc0ffc0;
}

// --- sums

// Adds two rows' bytes to the sums; `weights` has the upper row's weight in its low half.
template <enum pixel_format FORMAT>
static __device__ inline void rows_add(const unsigned above[GROUP_MAX / 4],
                                       const unsigned below[GROUP_MAX / 4], unsigned weights,
                                       unsigned sum[GROUP_MAX])
{
#pragma unroll
    for (int i = 0; i < group_bytes(FORMAT) / 4; i++) {
        const unsigned low = __byte_perm(above[i], below[i], 0x5140);
        const unsigned high = __byte_perm(above[i], below[i], 0x7362);
        sum[4 * i] = __dp2a_lo(weights, low, sum[4 * i]);
        sum[4 * i + 1] = __dp2a_hi(weights, low, sum[4 * i + 1]);
        sum[4 * i + 2] = __dp2a_lo(weights, high, sum[4 * i + 2]);
        sum[4 * i + 3] = __dp2a_hi(weights, high, sum[4 * i + 3]);
    }
}

// Adds up the rows of an output row's span, from a group's first row on.
template <enum pixel_format FORMAT, bool WIDE>
static __device__ inline void group_sum(const uint8_t *at, int stride, int first,
                                        struct interval window, const int16_t *weights, int bits,
                                        int count, unsigned sum[GROUP_MAX])
{
    const int to_15 = 15 - bits;
    unsigned above[GROUP_MAX / 4], below[GROUP_MAX / 4];
#pragma unroll 2
    for (int i = 0; i < count; i += 2, at += 2 * (ptrdiff_t)stride) {
        const unsigned pair = __ldg((const unsigned *)(weights + i)); // zeros follow the last one
        group_load<FORMAT, WIDE>(at, first, window, above);
        group_load<FORMAT, WIDE>(i + 1 < count ? at + stride : at, first, window, below);
        rows_add<FORMAT>(above, below, pair << to_15, sum);
    }
}

// Returns the number of samples that alternate in a plane.
template <enum pixel_format FORMAT> static __device__ inline int turns_of(int plane)
{
    int turns = 1;
#pragma unroll
    for (int c = 0; c < 3; c++)
        if (component_of(FORMAT, c).plane == plane && component_of(FORMAT, c).step > 0)
            turns = component_of(FORMAT, c).step / sample_bytes(FORMAT);
    return turns;
}

// Sets the first sample of a group's word number `word`, and the distance to its neighbour.
template <enum pixel_format FORMAT>
static __device__ inline void word_samples(int plane, int word, int *sample, int *neighbour)
{
    const int turns = turns_of<FORMAT>(plane);
    *sample = word / turns * 2 * turns + word % turns;
    *neighbour = turns;
    if (is_packed_422(FORMAT)) { // Y, Y, U, V of 8 bytes
        const int luma = component_of(FORMAT, 0).offset, i = word % 4;
        *sample = word / 4 * 8 + (i < 2 ? 4 * i + luma : component_of(FORMAT, i - 1).offset);
        *neighbour = i < 2 ? 2 : 4;
    }
}

// Stores a group's sums as words; `to` is aligned to 16 bytes.
template <enum pixel_format FORMAT>
static __device__ inline void sums_store(int plane, unsigned sum[GROUP_MAX], uint32_t *to)
{
    if (source_is_10bit(FORMAT))
#pragma unroll
        for (int i = 0; i < group_bytes(FORMAT) / 2; i++)
            sum[i] = sum[2 * i] + (sum[2 * i + 1] << 8);
#pragma unroll
    for (int i = 0; i < group_words(FORMAT); i += 4) {
        unsigned word[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            int s, neighbour;
            word_samples<FORMAT>(plane, i + k, &s, &neighbour);
            word[k] =
                __byte_perm(sum[s], sum[s + neighbour], source_is_10bit(FORMAT) ? 0x7362 : 0x6251);
        }
        *(uint4 *)(to + i) = make_uint4(word[0], word[1], word[2], word[3]);
    }
}

// Makes one group of one output row, which has entry `row` of the axis `y`.
template <enum pixel_format FORMAT>
static __device__ inline void group_make(const struct axis_item *item, int plane,
                                         const struct filter_axis *y, int row, int first,
                                         struct interval window, uint32_t *to)
{
    const int stride = item->stride[plane];
    const struct filter_span rows = y->spans[row];
    const int16_t *weights = y->weights + (ptrdiff_t)row * y->stride;
    const uint8_t *at = row_start(item->plane[plane], rows.first, stride) + first;
    const bool wide = ((uintptr_t)at | (unsigned)stride) % group_alignment(FORMAT) == 0 &&
                      first >= window.from && first + group_bytes(FORMAT) <= window.to;
    // Half of the unit that the shift by 8 or 16 bits leaves, for rounding.
    const bool low = !source_is_10bit(FORMAT);
    unsigned sum[GROUP_MAX];
#pragma unroll
    for (int i = 0; i < group_bytes(FORMAT); i++)
        sum[i] = low || i % 2 ? 128 : 0;
    if (wide)
        group_sum<FORMAT, true>(at, stride, first, window, weights, y->bits, rows.count, sum);
    else
        group_sum<FORMAT, false>(at, stride, first, window, weights, y->bits, rows.count, sum);
    sums_store<FORMAT>(plane, sum, to);
}

// Returns the bytes of a plane's rows that lie in the op's window of the source.
static __device__ inline struct interval plane_window(const struct warp *warp,
                                                      enum pixel_format format, int plane)
{
    const int sub = source_is_rgb(format) ? 0 : position_sub(warp->chroma_x);
    const struct interval luma = {warp->x0, warp->x1};
    const struct interval chroma = {warp->x0 >> sub, ((warp->x1 - 1) >> sub) + 1};
    return bytes_of(warp, format, plane, luma, chroma);
}

// Makes all sums of `rows` output rows from y on, with all threads of a block.
template <enum pixel_format FORMAT>
static __device__ inline void columns_make(const struct axis_item *item, const struct warp *warp,
                                           const struct run *run, int y, int rows, uint32_t *sums)
{
#pragma unroll
    for (int i = 0; i < pixel_format_planes(FORMAT); i++) {
        const struct plane_run plane = run->plane[i];
        if (plane.groups == 0)
            continue;
        const bool chroma = i > 0 && !source_is_rgb(FORMAT);
        const struct filter_axis *axis = chroma ? &warp->filtered.chroma_y : &warp->filtered.luma_y;
        const struct interval window = plane_window(warp, FORMAT, i);
        const unsigned reciprocal = 0xffffffff / plane.groups; // rounded down: times k + 1, not k
        for (int k = threadIdx.x; k < rows * plane.groups; k += COLUMN_THREADS) {
            const int row = __umulhi(k + 1, reciprocal), group = k - row * plane.groups;
            group_make<FORMAT>(item, i, axis, y + row, plane.first + group * group_bytes(FORMAT),
                               window,
                               sums + row * run->pitch + plane.words + group * group_words(FORMAT));
        }
    }
}

// --- the second pass

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
