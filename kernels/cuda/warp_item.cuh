// The parameters of warp_axis.cuh for one band of one result. The host fills them in, and decides
// which ops that kernel can make. Independent of CUDA.
#ifndef FRAMED_KERNELS_CUDA_WARP_ITEM_CUH
#define FRAMED_KERNELS_CUDA_WARP_ITEM_CUH

#include <stdlib.h>
#include <string.h>

#include "kernels/warp.h"

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

#endif
