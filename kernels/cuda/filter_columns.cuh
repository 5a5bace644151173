// The first of a filter's two passes: for some output rows, sums the source columns that a run of
// their pixels reads, into shared memory.
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
#ifndef FRAMED_KERNELS_CUDA_FILTER_COLUMNS_CUH
#define FRAMED_KERNELS_CUDA_FILTER_COLUMNS_CUH

#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/warp_item.cuh"
#include "kernels/warp.h"

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

#endif
