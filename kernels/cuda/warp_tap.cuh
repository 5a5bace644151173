// The samples that one output pixel of an axis-aligned warp (warp_axis.cuh) reads, and its levels
// before rounding. The bytes equal fixed.h's: sums are regrouped only where that is exact.
#ifndef FRAMED_KERNELS_CUDA_WARP_TAP_CUH
#define FRAMED_KERNELS_CUDA_WARP_TAP_CUH

#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/warp_item.cuh"

// --- one sample, where the taps after it weigh nothing

// Returns a luma sample, in units of single_unit() / 128 level.
template <enum pixel_format FORMAT> static __device__ inline int single(const uint8_t *at)
{
    const uint16_t *word = (const uint16_t *)at;
    if (!source_is_10bit(FORMAT))
        return __ldg(at);
    return FORMAT == PIXEL_P010 ? (__ldg(word) & 0xffc0) >> 1 : __ldg(word) & 1023;
}

static __device__ constexpr int single_unit(enum pixel_format format)
{
    return format == PIXEL_P010 ? 1 : format == PIXEL_YUV420P10 ? 32 : 128;
}

// --- horizontal: two neighbours to 7 fraction bits centred on 128

// Bytes 0 and 1 of `both` are the left and the right tap.
static __device__ inline int low8(unsigned both, unsigned weights)
{
    return (int)__dp2a_lo(weights, both, 64u - (16384u << 7)) >> 7;
}

// The same for bytes 2 and 3.
static __device__ inline int high8(unsigned both, unsigned weights)
{
    return (int)__dp2a_hi(weights, both, 64u - (16384u << 7)) >> 7;
}

template <enum pixel_format FORMAT>
static __device__ inline int pair10(unsigned left, unsigned right, unsigned weights)
{
    const int bits = FORMAT == PIXEL_P010 ? 15 : 9; // P010: 64 times the sample
    const unsigned mask = FORMAT == PIXEL_P010 ? 0xffc0 : 1023;
    const unsigned sum = (left & mask) * (weights & 0xffff) + (right & mask) * (weights >> 16);
    return (int)((sum + (1u << (bits - 1))) >> bits) - 16384;
}

// The samples are `step` bytes apart.
template <enum pixel_format FORMAT>
static __device__ inline int pair(const uint8_t *at, int step, unsigned weights)
{
    if (!source_is_10bit(FORMAT))
        return low8(__ldg(at) | __ldg(at + step) << 8, weights);
    const uint16_t *word = (const uint16_t *)at;
    return pair10<FORMAT>(__ldg(word), __ldg(word + 1), weights);
}

// For adjacent U and V.
template <enum pixel_format FORMAT>
static __device__ inline void pair_uv(const uint8_t *at, unsigned weights, int uv[2])
{
    if (!source_is_10bit(FORMAT)) {
        const uint16_t *sample = (const uint16_t *)at;
        const unsigned both = __byte_perm(__ldg(sample), __ldg(sample + 1), 0x5140);
        uv[0] = low8(both, weights);
        uv[1] = high8(both, weights);
    } else {
        const unsigned *sample = (const unsigned *)at;
        const unsigned left = __ldg(sample), right = __ldg(sample + 1);
        uv[0] = pair10<FORMAT>(left, right, weights);
        uv[1] = pair10<FORMAT>(left >> 16, right >> 16, weights);
    }
}

// For three bytes of each of two 4-byte pixels, in memory order.
static __device__ inline void pair_words(const uint8_t *at, unsigned weights, int h[3])
{
    const unsigned *pixel = (const unsigned *)at;
    const unsigned left = __ldg(pixel), right = __ldg(pixel + 1);
    const unsigned low = __byte_perm(left, right, 0x5140);
    h[0] = low8(low, weights);
    h[1] = high8(low, weights);
    h[2] = low8(__byte_perm(left, right, 0x7362), weights);
}

// The row of each plane that contains a row of taps.
struct axis_line {
    const uint8_t *plane[PLANES_MAX];
};

// Makes R, G, B.
template <enum pixel_format FORMAT>
static __device__ inline void pair_rgb(struct axis_line line, struct warp_column column, int h[3])
{
    if (FORMAT == PIXEL_BGRA || FORMAT == PIXEL_RGBA) {
        int in_memory[3];
        pair_words(line.plane[0] + column.offset, column.weights, in_memory);
        for (int c = 0; c < 3; c++)
            h[c] = in_memory[FORMAT == PIXEL_BGRA ? 2 - c : c];
    } else {
        for (int c = 0; c < 3; c++) {
            const struct component k = component_of(FORMAT, c);
            h[c] = pair<FORMAT>(line.plane[k.plane] + column.offset + k.offset, k.step,
                                column.weights);
        }
    }
}

// Makes rounded levels of R, G, B, for a column and a row whose weights are both 0.
template <enum pixel_format FORMAT>
static __device__ inline void single_rgb(struct axis_line line, struct warp_column column,
                                         int level[3])
{
    if (FORMAT == PIXEL_BGRA || FORMAT == PIXEL_RGBA) {
        const unsigned pixel = __ldg((const unsigned *)(line.plane[0] + column.offset));
        for (int c = 0; c < 3; c++)
            level[c] = pixel >> 8 * (FORMAT == PIXEL_BGRA ? 2 - c : c) & 255;
    } else {
        for (int c = 0; c < 3; c++) {
            const struct component k = component_of(FORMAT, c);
            level[c] = __ldg(line.plane[k.plane] + column.offset + k.offset);
        }
    }
}

template <enum pixel_format FORMAT>
static __device__ inline void pair_chroma(struct axis_line line, struct warp_column column,
                                          int uv[2])
{
    if (FORMAT == PIXEL_NV12 || FORMAT == PIXEL_NV21 || FORMAT == PIXEL_P010) {
        int in_memory[2];
        pair_uv<FORMAT>(line.plane[1] + column.offset, column.weights, in_memory);
        uv[0] = in_memory[FORMAT == PIXEL_NV21];
        uv[1] = in_memory[FORMAT != PIXEL_NV21];
    } else {
        for (int c = 1; c < 3; c++) {
            const struct component k = component_of(FORMAT, c);
            uv[c - 1] = pair<FORMAT>(line.plane[k.plane] + column.offset + k.offset, k.step,
                                     column.weights);
        }
    }
}

// --- vertical and colour: levels with 21 fraction bits, rounding term included

struct axis_lines {
    struct axis_line above, below;
    int weight; // of below
};

// Returns the lines of planes first to end - 1.
static __device__ inline struct axis_lines lines_at(const struct axis_item *item, int first,
                                                    int end, const uint16_t row[2], int weight)
{
    struct axis_lines lines;
    for (int i = first; i < end; i++) {
        lines.above.plane[i] = row_start(item->plane[i], row[0], item->stride[i]);
        lines.below.plane[i] = row_start(item->plane[i], row[1], item->stride[i]);
    }
    lines.weight = weight;
    return lines;
}

// Equals vertical(): one rounding at the end, and the sum fits 31 bits.
static __device__ inline int vertical31(int above, int below, int weight)
{
    return (above * (2 * (WEIGHT_ONE - weight)) + (below * (2 * weight) + 16384)) >> 15;
}

template <enum pixel_format FORMAT, bool WHOLE>
static __device__ inline void rgb21(const struct axis_item *item, const struct axis_lines *lines,
                                    struct warp_column column, int level21[3])
{
    int above[3], below[3];
    if (WHOLE) {
        single_rgb<FORMAT>(lines->above, column, above);
        for (int c = 0; c < 3; c++)
            level21[c] = above[c] << 21 | 1 << 20;
        return;
    }
    pair_rgb<FORMAT>(lines->above, column, above);
    pair_rgb<FORMAT>(lines->below, column, below);
    for (int c = 0; c < 3; c++)
        level21[c] =
            above[c] * (WEIGHT_ONE - lines->weight) + (below[c] * lines->weight + item->round);
}

template <enum pixel_format FORMAT, bool WHOLE>
static __device__ inline int luma21(const struct axis_item *item, const struct axis_lines *lines,
                                    struct warp_column column)
{
    const struct component k = component_of(FORMAT, 0);
    const uint8_t *above = lines->above.plane[0] + column.offset + k.offset;
    const uint8_t *below = lines->below.plane[0] + column.offset + k.offset;
    if (WHOLE) // all terms but the sample's are the same for all pixels
        return single<FORMAT>(above) * (item->luma * single_unit(FORMAT)) +
               (item->round - item->luma * 16384);
    return vertical31(pair<FORMAT>(above, k.step, column.weights),
                      pair<FORMAT>(below, k.step, column.weights), lines->weight) *
               item->luma +
           item->round;
}

// Makes U and V that keep their values.
template <enum pixel_format FORMAT>
static __device__ inline void chroma21(const struct axis_item *item, const struct axis_lines *lines,
                                       struct warp_column column, int uv21[2])
{
    int above[2], below[2];
    pair_chroma<FORMAT>(lines->above, column, above);
    pair_chroma<FORMAT>(lines->below, column, below);
    for (int i = 0; i < 2; i++)
        uv21[i] = vertical31(above[i], below[i], lines->weight) * item->luma + item->round;
}

// Returns a sum with 15 more fraction bits than mulhrs would leave, ready for further terms.
static __device__ inline int to_15(int sum)
{
    return (sum & ~32767) | 16384;
}

// Makes R, G, B from luma with 21 fraction bits and from chroma samples.
static __device__ inline void rgb21_of_yuv(const struct axis_item *item, int luma, int u, int v,
                                           int level21[3])
{
    const int y = to_15(luma);
    level21[0] = v * item->rv + y;
    level21[1] = v * item->gv + to_15(u * item->gu + y);
    level21[2] = u * item->blue + y;
}

template <enum pixel_format FORMAT>
static __device__ inline void yuv21(const struct axis_item *item, int luma,
                                    const struct axis_lines *lines, struct warp_column column,
                                    int level21[3])
{
    int above[2], below[2];
    pair_chroma<FORMAT>(lines->above, column, above);
    pair_chroma<FORMAT>(lines->below, column, below);
    const int u = vertical31(above[0], below[0], lines->weight);
    const int v = vertical31(above[1], below[1], lines->weight);
    rgb21_of_yuv(item, luma, u, v, level21);
}

#endif
