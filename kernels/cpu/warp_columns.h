// Positions of a strip's output columns in a source row, for wide registers: a template, see
// fixed_lanes.h.
#ifndef FRAMED_KERNELS_CPU_WARP_COLUMNS_H
#define FRAMED_KERNELS_CPU_WARP_COLUMNS_H

#include "kernels/cpu/fixed_lanes.h"
#include "kernels/ops.h"

enum { STRIP = 1024 }; // most columns: a strip's rows stay in the first cache
_Static_assert((int)STRIP % (int)PIXELS == 0, "no block leaves a strip's buffers");

// For luma or RGB, or for chroma. The last column is repeated to fill whole registers.
struct columns {
    int reach;                         // for gather_pairs; REACHES if none is far enough
    int step;                          // bytes from a sample to the next
    int last;                          // offset of the last valid sample
    bool coarse;                       // weights of 7 bits are exact: stored for weigh_pairs
    alignas(64) int16_t weight[STRIP]; // else of the right tap, Q15
    alignas(64) uint16_t index[STRIP]; // for gather_pairs: both taps of 8 bits, else the left one
    int32_t base[STRIP / 4];
    int32_t offset[STRIP]; // of the left tap in its row, bytes
};

static inline int padded(int n)
{
    return (n + PIXELS - 1) / PIXELS * PIXELS;
}

// Stores the weights of both taps of 8-bit samples as bytes, if that is exact.
static inline void columns_coarsen(struct columns *c, int n, int sample_bytes)
{
    int any = 0;
    for (int i = 0; i < n; i++)
        any |= c->weight[i];
    c->coarse = sample_bytes == 1 && any % 256 == 0;
    if (!c->coarse)
        return;
    for (int i = 0; i < padded(n); i++) {
        const int right = c->weight[i] / 256;
        c->weight[i] = (int16_t)(right << 8 | (128 - right));
    }
}

// A right tap with the full weight, which Q15 cannot represent, becomes a left one.
static inline void columns_taps(struct columns *c, const struct warp_column *table, int n)
{
    const int end = padded(n);
    for (int i = 0; i < n; i++) {
        const int right = (int)(table[i].weights >> 16);
        c->weight[i] = (int16_t)(right == WEIGHT_ONE ? 0 : 2 * right);
        c->offset[i] = (int32_t)table[i].offset + (right == WEIGHT_ONE ? c->step : 0);
    }
    for (int i = n; i < end; i++) {
        c->weight[i] = c->weight[n - 1];
        c->offset[i] = c->offset[n - 1];
    }
}

// Last start of a window within the row, for any of its components; below 0: none.
static inline int window_limit(const struct columns *c, int row_bytes, int sample_bytes, int window)
{
    return row_bytes - (c->step - sample_bytes) - window;
}

// Places windows; each starts at a cache line if it then still holds all samples required.
static inline bool columns_reach(struct columns *c, int n, int row_bytes, int sample_bytes,
                                 struct reach reach)
{
    const int limit = window_limit(c, row_bytes, sample_bytes, reach.bytes);
    if (limit < 0)
        return false;
    for (int i = 0; i < padded(n); i += reach.lanes) {
        const int32_t a = c->offset[i], b = c->offset[i + reach.lanes - 1]; // monotone
        const int32_t lo = a < b ? a : b, hi = (a < b ? b : a) + c->step;
        const int32_t end = (hi < c->last ? hi : c->last) + sample_bytes, line = lo & -64;
        const int32_t from = end - line <= reach.bytes ? line : lo;
        const int32_t base = from < limit ? from : limit;
        if (end - base > reach.bytes)
            return false;
        for (int k = i; k < i + reach.lanes; k += 4)
            c->base[k / 4] = base;
    }
    return true;
}

typedef int32_t four_s32 __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint16_t four_u16 __attribute__((vector_size(8), aligned(2), may_alias));

// Picks the nearest reach that suffices. A right tap with weight 0 may be outside its window:
// gather_pairs then gives any byte.
static inline void columns_index(struct columns *c, int n, int row_bytes, int sample_bytes)
{
    c->reach = 0;
    while (c->reach < REACHES && !columns_reach(c, n, row_bytes, sample_bytes, reaches[c->reach]))
        c->reach++;
    if (c->reach == REACHES)
        return;
    const int second = sample_bytes == 1 ? c->step : 1;
    for (int i = 0; i < padded(n); i += 4) {
        const four_s32 at = *(const four_s32 *)(c->offset + i) - c->base[i / 4];
        const four_s32 index = (at & 255) | (at + second) << 8;
        *(four_u16 *)(c->index + i) = __builtin_convertvector(index, four_u16);
    }
}

// For columns [x, x + n) of component 0, or of 1 and components with the same layout.
static inline void columns_init(struct columns *c, const struct image *src, const struct warp *warp,
                                int component, int x, int n)
{
    const struct component k = component_of(src->format, component);
    const int sample_bytes = source_is_10bit(src->format) ? 2 : 1;
    const int sub = component == 0 ? 0 : position_sub(warp->chroma_x);
    c->step = k.step;
    c->last = ((warp->x1 - 1) >> sub) * k.step;
    columns_taps(c, (component == 0 ? warp->luma_columns : warp->chroma_columns) + x, n);
    columns_coarsen(c, n, sample_bytes);
    columns_index(c, n, (int)plane_row_bytes(src->format, k.plane, src->width), sample_bytes);
}

// --- the taps of one row of samples: 7 fraction bits, centred on 128

// Both taps of LANES columns from i on, one by one. After the last sample the left tap is repeated.
static inline FRAMED_HD vec_s16 pairs_copy(const struct columns *c, const uint8_t *row, size_t i)
{
    alignas(64) uint16_t pair[LANES];
    for (int k = 0; k < LANES; k++) {
        const int32_t left = c->offset[i + k];
        const int32_t right = left < c->last ? left + c->step : left;
        pair[k] = (uint16_t)(row[left] | row[right] << 8);
    }
    __asm__("" : "+m"(pair)); // otherwise clang builds the register byte by byte: a third slower
    return load_s16(pair);
}

static inline FRAMED_HD vec_s16 lanes_of_8bit(const struct columns *c, const uint8_t *row, size_t i,
                                              int reach, bool coarse, vec_s16 index, vec_s16 weight)
{
    const vec_s16 pairs =
        reach < REACHES ? gather_pairs(reach, row, c->base + i / 4, index) : pairs_copy(c, row, i);
    return coarse ? weigh_pairs(pairs, weight) : horizontal8_lanes(pairs, weight);
}

// 10-bit samples of LANES columns from i on: the left taps, or those `right` bytes further.
static inline FRAMED_HD vec_s16 taps_10bit(const struct columns *c, enum pixel_format format,
                                           const uint8_t *row, size_t i, int reach, vec_s16 index,
                                           int right)
{
    if (reach < REACHES) {
        const vec_s16 there = (vec_s16)((vec_u8)index + (uint8_t)right);
        return samples_10bit(format, gather_pairs(reach, row, c->base + i / 4, there));
    }
    alignas(64) uint16_t word[LANES];
    for (int k = 0; k < LANES; k++) {
        const int32_t left = c->offset[i + k];
        word[k] = *(const uint16_t *)(row + (left < c->last ? left + right : left));
    }
    return samples_10bit(format, load_s16(word));
}

static inline FRAMED_HD vec_s16 lanes_of_10bit(const struct columns *c, enum pixel_format format,
                                               const uint8_t *row, size_t i, int reach,
                                               vec_s16 index, vec_s16 weight)
{
    const vec_s16 left = taps_10bit(c, format, row, i, reach, index, 0);
    const vec_s16 right = taps_10bit(c, format, row, i, reach, index, c->step);
    return horizontal10_lanes(left, right, weight);
}

// Rows of components with the same layout, which share index and weight.
struct row_set {
    int count;
    const uint8_t *from[3];
    int16_t *to[3];
};

static inline FRAMED_HD void rows_of(const struct row_set *set, const struct columns *c,
                                     enum pixel_format format, int n, int reach, bool coarse,
                                     int count)
{
    const struct row_set rows = *set;
    for (size_t i = 0; i < (size_t)n; i += LANES) {
        const vec_s16 index = load_s16(c->index + i), weight = load_s16(c->weight + i);
        for (int k = 0; k < count; k++)
            store_s16(rows.to[k] + i,
                      source_is_10bit(format)
                          ? lanes_of_10bit(c, format, rows.from[k], i, reach, index, weight)
                          : lanes_of_8bit(c, rows.from[k], i, reach, coarse, index, weight));
    }
}

static inline FRAMED_HD void rows_counted(const struct row_set *rows, const struct columns *c,
                                          enum pixel_format format, int n, int reach, bool coarse)
{
    if (rows->count == 1)
        rows_of(rows, c, format, n, reach, coarse, 1);
    else if (rows->count == 2)
        rows_of(rows, c, format, n, reach, coarse, 2);
    else
        rows_of(rows, c, format, n, reach, coarse, 3);
}

static inline FRAMED_HD void rows_reached(const struct row_set *rows, const struct columns *c,
                                          enum pixel_format format, int n, bool coarse)
{
    _Static_assert(REACHES <= 4, "cases");
    switch (c->reach) {
#define CASE(reach)                                                                                \
    case reach:                                                                                    \
        if (reach <= REACHES)                                                                      \
            rows_counted(rows, c, format, n, reach < REACHES ? reach : REACHES, coarse);           \
        break;
        CASE(0)
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
#undef CASE
    }
}

// Makes n columns of each row; c: the columns of their components.
static void rows_make(const struct row_set *rows, const struct columns *c, enum pixel_format format,
                      int n)
{
    if (format == PIXEL_P010)
        rows_reached(rows, c, PIXEL_P010, n, false);
    else if (format == PIXEL_YUV420P10)
        rows_reached(rows, c, PIXEL_YUV420P10, n, false);
    else if (c->coarse)
        rows_reached(rows, c, PIXEL_YUV420P, n, true);
    else
        rows_reached(rows, c, PIXEL_YUV420P, n, false);
}

#endif
