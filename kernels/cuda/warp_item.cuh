// One band of one result for warp_axis.cuh: its parameters, and the samples that one
// output pixel reads.
#ifndef FRAMED_KERNELS_CUDA_WARP_ITEM_CUH
#define FRAMED_KERNELS_CUDA_WARP_ITEM_CUH

#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/ptx.cuh"
#include "kernels/warp.h"

// --- parameters. The host fills them in, and decides which ops that kernel can make. Independent
// of CUDA.

enum { AXIS_COLUMNS = 4 }; // pixels of a row per thread; divides warp_padded_width()

enum axis_flags {
    AXIS_GRAY = 1,
    AXIS_BGR = 2,
    AXIS_PACKED = 4,  // nhwc
    AXIS_WIDE = 8,    // a thread's pixels may be stored as one
    AXIS_LOOKUP = 16, // elements come from the table; else they are the levels
    AXIS_CHROMA = 32, // only U and V, which keep their values
    AXIS_WHOLE = 64,  // axis_is_whole, for a warp with a LUT
};

// One cuda_item in the kernel's parameters, whose 4 KB have room for CUDA_ITEMS_MAX of them.
struct axis_item {
    const uint8_t *plane[PLANES_MAX];
    uint8_t *dst;
    const void *table; // the op's, 3 x 256 elements
    union {
        const struct warp_row *rows; // then luma columns, chroma columns, coverage of columns
        struct {
            int32_t left, right;
        } seen; // for filters, with the table in the warp: columns that see some of the picture
    };
    int32_t stride[PLANES_MAX];
    int32_t y0, top, bottom, y1; // the band; rows outside [top, bottom) are only fill
    uint32_t element[3];         // of fill, per channel of the tensor
    uint16_t width, height;
    // yuv_to_rgb; `round` is the sum of a pixel's constant terms, `blue` is bu plus 1 for U itself
    int32_t round, blue;
    int16_t luma, rv, gu, gv;
    int16_t gray[3];
    uint8_t fill[3], flags;
};

// Returns the warp that contains the item's table.
static inline FRAMED_HD const struct warp *item_warp(const struct axis_item *item)
{
    return (const struct warp *)((const uint8_t *)item->table - offsetof(struct warp, table));
}

// --- which ops

// Returns true if no sum before a channel's last one saturates, or only if the level is 0 or 255
// anyway: then sums can be regrouped.
static inline bool sums_are_exact(const struct yuv_to_rgb *c)
{
    const int reach = mulhrs(16384, abs(c->y)) + abs(c->offset) + 1;
    return reach + abs(c->gu) / 2 + 1 <= INT16_MAX && abs(c->bu) <= 16384;
}

// A column's right tap is its left one's neighbour, which must exist.
static inline bool axis_makes(const struct warp *warp)
{
    if (!warp->rows)
        return false;
    if (source_is_rgb(warp->source))
        return warp->x1 - warp->x0 >= 2;
    const int sub = position_sub(warp->chroma_x);
    return (warp->x1 - 1) >> sub > warp->x0 >> sub && sums_are_exact(&warp->rgb);
}

// True if the kernel can make the op of this source: it loads samples of several bytes as one.
static inline bool axis_fits(const struct warp *warp, const struct image *src)
{
    for (int c = 0; c < 3; c++) {
        const struct component k = component_of(warp->source, c);
        const struct plane *plane = &src->plane[k.plane];
        const int word = k.step == 0 || k.step % 2 ? 1 : k.step;
        if (plane->stride != (int32_t)plane->stride || plane->stride % word != 0 ||
            (uintptr_t)plane->data % word != 0)
            return false;
    }
    return axis_makes(warp);
}

// Returns true if all positions are whole samples. Tables are rounded lines: if both ends and the
// step are whole, no position is off by more than position_of rounds away.
static inline bool steps_are_whole(const int32_t *table, int n)
{
    const int64_t length = (int64_t)table[n - 1] - table[0];
    return table[0] % 65536 == 0 && (n == 1 || length % ((n - 1) * (int64_t)65536) == 0);
}

// Returns true if no output pixel lies between luma or RGB samples.
static inline bool axis_is_whole(const struct warp *warp)
{
    if (warp->filter == FILTER_NEAREST)
        return true;
    return steps_are_whole(warp->colx, warp->width) && steps_are_whole(warp->rowy, warp->height);
}

// --- the item

struct interval {
    int from, to;
};

// Returns the entries of [from, to) along an axis that see some of the picture, one run.
static inline struct interval range_seen(const uint16_t *coverage, int from, int to)
{
    while (from < to && coverage[from] == 0)
        from++;
    while (to > from && coverage[to - 1] == 0)
        to--;
    return {from, to};
}

static inline uint8_t axis_flags_of(const struct warp *warp, const void *dst)
{
    const size_t run = AXIS_COLUMNS * element_bytes(warp->dtype);
    const bool gray = warp->order == ORDER_GRAY, chroma = warp->order == ORDER_UV;
    const bool wide = warp->width % AXIS_COLUMNS == 0 && (uintptr_t)dst % run == 0;
    uint8_t other = warp->dtype != DTYPE_U8; // differs from the level
    for (int c = 0; c < warp->channels; c++)
        for (int i = 0; i < 256; i++)
            other |= warp->table.u8[c][i] ^ i;
    return (gray ? AXIS_GRAY : 0) | (warp->order == ORDER_BGR ? AXIS_BGR : 0) |
           (warp->layout == LAYOUT_NHWC && !gray ? AXIS_PACKED : 0) | (wide ? AXIS_WIDE : 0) |
           (other ? AXIS_LOOKUP : 0) | (chroma ? AXIS_CHROMA : 0) |
           (warp->lut && axis_is_whole(warp) ? AXIS_WHOLE : 0);
}

// Fills an item, except for the addresses of the op's tables.
static inline struct axis_item axis_item_of(const struct warp *warp, const struct image *src,
                                            void *dst, struct band band)
{
    const struct yuv_to_rgb *c = &warp->rgb;
    struct axis_item a = {};
    for (int i = 0; i < PLANES_MAX; i++) {
        a.plane[i] = src->plane[i].data;
        a.stride[i] = (int32_t)src->plane[i].stride;
        a.gray[i] = warp->gray[i];
        a.fill[i] = warp->fill[i];
    }
    for (int i = 0; i < warp->channels; i++)
        a.element[i] = warp->fill_element[i];
    a.dst = (uint8_t *)dst;
    a.y0 = a.top = band.y0;
    a.y1 = a.bottom = band.y1;
    if (filter_weighs(warp->filter)) {
        const struct interval columns = range_seen(warp->filtered.coverage_x, 0, warp->width);
        const struct interval rows = range_seen(warp->filtered.coverage_y, band.y0, band.y1);
        a.seen = {columns.from, columns.to};
        a.top = rows.from;
        a.bottom = rows.to;
    } else {
        while (a.top < a.y1 && warp->rows[a.top].coverage == 0)
            a.top++;
        while (a.bottom > a.top && warp->rows[a.bottom - 1].coverage == 0)
            a.bottom--;
    }
    a.width = (uint16_t)warp->width;
    a.height = (uint16_t)warp->height;
    // RGB: the rounding of vertical, channel6's offset, and its rounding and level_of's; YUV:
    // luma6's
    a.round =
        source_is_rgb(warp->source) ? 8192 + (16384 << 14) + (65 << 14) : c->offset * 32768 + 16384;
    a.blue = c->bu + 32768;
    a.luma = c->y;
    a.rv = c->rv;
    a.gu = c->gu;
    a.gv = c->gv;
    a.flags = axis_flags_of(warp, dst);
    return a;
}

// --- the samples that one output pixel of an axis-aligned warp reads, and its levels before
// rounding. The bytes equal fixed.h's: sums are regrouped only where that is exact.

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
