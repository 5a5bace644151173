// Levels to elements, and elements to the tensor: a template, see fixed_lanes.h.
#ifndef FRAMED_KERNELS_CPU_WARP_ELEMENTS_H
#define FRAMED_KERNELS_CPU_WARP_ELEMENTS_H

#include "kernels/cpu/warp_rows.h"
#include "kernels/warp.h"

// level_sum of FLOATS adjacent elements.
struct sum_registers {
    vec_f32 a, b, c, d;
};

enum { PATTERN = 192 }; // bytes
_Static_assert(PATTERN % VECTOR_BYTES == 0, "whole registers");
_Static_assert(PATTERN % (3 * sizeof(float)) == 0, "whole pixels of any type");

struct elements {
    const struct image *dst;
    const struct warp *warp;
    bool packed;                          // channels are adjacent
    bool same;                            // a byte equals its level
    alignas(64) uint8_t fill[3][PATTERN]; // per planar channel; packed: [0], channels in turn
    struct sum_registers sum[3][3];       // per planar channel; packed: [0], channels in turn
};

// --- floats as sums

// Three registers, since packed channels repeat after three. Channel c, or all in turn.
static inline void sums_init(struct sum_registers to[3], const struct warp *warp, int c,
                             bool packed)
{
    const struct level_sum sum = warp->sum[c];
    to[0] = to[1] = to[2] =
        (struct sum_registers){all_f32(sum.a), all_f32(sum.b), all_f32(sum.c), all_f32(sum.d)};
    for (int i = 0; packed && i < 3 * FLOATS; i++) {
        to[i / FLOATS].a[i % FLOATS] = warp->sum[i % 3].a;
        to[i / FLOATS].b[i % FLOATS] = warp->sum[i % 3].b;
        to[i / FLOATS].c[i % FLOATS] = warp->sum[i % 3].c;
        to[i / FLOATS].d[i % FLOATS] = warp->sum[i % 3].d;
    }
}

// Copies members separately: gcc keeps a struct copied as a whole in memory.
static inline FRAMED_HD struct sum_registers sum_load(const struct sum_registers *at)
{
    return (struct sum_registers){load_f32((const float *)&at->a), load_f32((const float *)&at->b),
                                  load_f32((const float *)&at->c), load_f32((const float *)&at->d)};
}

static inline FRAMED_HD void sum_store(uint8_t *to, struct sum_registers sum, const uint8_t *level,
                                       bool half)
{
    const vec_f32 x = __builtin_convertvector(levels_widened(level), vec_f32);
    const vec_f32 y = fma_f32(x, sum.a, sum.b) + fma_f32(x, sum.c, sum.d);
    if (half)
        store_half((uint16_t *)to, y);
    else
        store_u8(to, (vec_u8)y);
}

// Stores n elements; reads levels after them up to whole registers.
static inline FRAMED_HD void sums_store_of(uint8_t *to, const struct sum_registers sums[3],
                                           const uint8_t *level, int n, bool half)
{
    const int bytes = half ? 2 : 4, step = FLOATS * bytes;
    const struct sum_registers sum[3] = {sum_load(&sums[0]), sum_load(&sums[1]),
                                         sum_load(&sums[2])};
    int i = 0;
    for (; i + 3 * FLOATS <= n; i += 3 * FLOATS) {
        uint8_t *at = to + i * bytes;
        sum_store(at, sum[0], level + i, half);
        sum_store(at + step, sum[1], level + i + FLOATS, half);
        sum_store(at + 2 * step, sum[2], level + i + 2 * FLOATS, half);
    }
    uint8_t rest[3 * FLOATS * sizeof(float)];
    for (int k = 0; k < 3; k++)
        sum_store(rest + k * step, sum[k], level + i + k * FLOATS, half);
    memcpy(to + i * bytes, rest, (n - i) * bytes);
}

static void sums_store(uint8_t *to, const struct sum_registers sums[3], const uint8_t *level, int n,
                       bool half)
{
    if (half)
        sums_store_of(to, sums, level, n, true);
    else
        sums_store_of(to, sums, level, n, false);
}

// --- preparation of a call

static inline bool bytes_stay(const struct warp *warp)
{
    int other = 0;
    for (int c = 0; c < warp->channels; c++)
        for (int i = 0; i < 256; i++)
            other |= warp->table.u8[c][i] ^ i;
    return other == 0;
}

// The fill of one pixel as elements, repeated.
static inline void fill_make(uint8_t to[PATTERN], const struct warp *warp, int c, int channels)
{
    const int bytes = (int)element_bytes(warp->dtype);
    int n = channels * bytes;
    for (int k = 0; k < channels; k++)
        memcpy(to + k * bytes, &warp->fill_element[c + k], bytes);
    for (; n < PATTERN; n *= 2)
        memcpy(to + n, to, n < PATTERN - n ? n : PATTERN - n);
}

static inline void elements_init(struct elements *e, const struct image *dst,
                                 const struct warp *warp)
{
    const bool bytes = warp->dtype == DTYPE_U8 || warp->dtype == DTYPE_S8;
    e->dst = dst;
    e->warp = warp;
    e->packed = warp->layout == LAYOUT_NHWC && warp->channels > 1;
    e->same = bytes && bytes_stay(warp);
    for (int c = 0; c < (e->packed ? 1 : warp->channels); c++) {
        fill_make(e->fill[c], warp, c, e->packed ? warp->channels : 1);
        if (warp->summed)
            sums_init(e->sum[c], warp, c, e->packed);
    }
}

// --- fill

// Repeats the pattern.
static inline void pattern_store(uint8_t *to, size_t bytes, const uint8_t pattern[PATTERN])
{
    size_t i = 0;
    for (; i + PATTERN <= bytes; i += PATTERN)
        for (int k = 0; k < PATTERN; k += VECTOR_BYTES)
            store_u8(to + i + k, load_u8(pattern + k));
    memcpy(to + i, pattern, bytes - i);
}

// Fills columns [x0, x1) of rows [y0, y1).
static inline void elements_fill(const struct elements *e, int x0, int x1, int y0, int y1)
{
    const int channels = e->packed ? e->warp->channels : 1; // adjacent ones
    const size_t pixel = element_bytes(e->warp->dtype) * channels;
    const size_t row = (x1 - x0) * pixel;
    if (x0 >= x1 || y0 >= y1)
        return;
    for (int c = 0; c < (e->packed ? 1 : e->warp->channels); c++) {
        const struct plane *plane = &e->dst->plane[c];
        uint8_t *to = plane->data + (ptrdiff_t)y0 * plane->stride + x0 * pixel;
        if (row == (size_t)plane->stride) {
            pattern_store(to, row * (y1 - y0), e->fill[c]);
            continue;
        }
        for (int y = y0; y < y1; y++, to += plane->stride)
            pattern_store(to, row, e->fill[c]);
    }
}

// --- pictures

// Stores elements by table, with `period` channels in turn from c on.
static void table_store(void *to, const struct warp *warp, int c, int period, const uint8_t *level,
                        int n)
{
    for (int k = 0; k < period; k++) {
        switch (warp->dtype) {
        case DTYPE_U8:
        case DTYPE_S8:
            for (int i = k; i < n; i += period)
                ((uint8_t *)to)[i] = warp->table.u8[c + k][level[i]];
            break;
        case DTYPE_F16:
            for (int i = k; i < n; i += period)
                ((uint16_t *)to)[i] = warp->table.f16[c + k][level[i]];
            break;
        case DTYPE_F32:
            for (int i = k; i < n; i += period)
                ((float *)to)[i] = warp->table.f32[c + k][level[i]];
            break;
        }
    }
}

static inline void levels_store(const struct elements *e, void *to, int c, const uint8_t *level,
                                int n)
{
    if (e->same)
        memcpy(to, level, n);
    else if (e->warp->summed)
        sums_store(to, e->sum[c], level, n, e->warp->dtype == DTYPE_F16);
    else
        table_store(to, e->warp, c, e->packed ? e->warp->channels : 1, level, n);
}

// Writes the channels of levels [from, to) in turn.
static inline void levels_pack(uint8_t *packed, const struct levels *levels, int channels, int from,
                               int to)
{
    const uint8_t(*row)[STRIP + LEVELS_SPARE] = levels->row;
    int i = from;
    for (; channels == 3 && i + PIXELS <= to; i += PIXELS, packed += 3 * PIXELS)
        store_triples(packed, load_u8(row[0] + i), load_u8(row[1] + i), load_u8(row[2] + i));
    for (; channels == 2 && i + LANES <= to; i += LANES, packed += 2 * LANES)
        store_u8(packed, halves_zip(halves_load(row[0] + i, row[1] + i)));
    for (; i < to; i++)
        for (int c = 0; c < channels; c++)
            *packed++ = row[c][i];
}

// Stores levels [from, to) to the pixels from (x + from, y) on.
static inline void elements_store(const struct elements *e, int x, int y,
                                  const struct levels *levels, int from, int to)
{
    const int channels = e->warp->channels, n = to - from;
    const size_t pixel = element_bytes(e->warp->dtype) * (e->packed ? channels : 1);
    x += from;
    if (e->packed) {
        const struct plane *plane = &e->dst->plane[0];
        uint8_t *at = plane->data + (ptrdiff_t)y * plane->stride + x * pixel;
        alignas(64) uint8_t packed[3 * STRIP + LEVELS_SPARE];
        levels_pack(e->same ? at : packed, levels, channels, from, to);
        if (!e->same)
            levels_store(e, at, 0, packed, channels * n);
        return;
    }
    for (int c = 0; c < channels; c++) {
        const struct plane *plane = &e->dst->plane[c];
        uint8_t *at = plane->data + (ptrdiff_t)y * plane->stride + x * pixel;
        levels_store(e, at, c, levels->row[c] + from, n);
    }
}

#endif
