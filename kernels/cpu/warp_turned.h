// Rows of levels where the axes mix: rotation, skew, quarter turns. If no tap is clamped, samples
// are fetched one by one and everything else is in wide registers; pixels at the picture's edges
// are made like the reference's. A template, see fixed_lanes.h.
#ifndef FRAMED_KERNELS_CPU_WARP_TURNED_H
#define FRAMED_KERNELS_CPU_WARP_TURNED_H

#include "kernels/cpu/warp_rows.h"

// --- levels to elements, and elements to the tensor

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

// --- rows of levels

enum {
    TURN = 128,  // columns of a run: its source lines are still in the first cache for the next row
    AHEAD = 4,   // rows from the current one to the one whose source is prefetched
    SPACING = 4, // columns: about a cache line, across source rows
};
_Static_assert((int)TURN <= (int)STRIP, "struct levels holds a run");
_Static_assert((int)TURN % (int)PIXELS == 0, "no block leaves a run's buffers");

// Positions of each pixel's four taps, for luma or RGB, or for chroma.
struct turn_taps {
    alignas(64) int32_t row[TURN], column[TURN];        // of the first tap: sample row, bytes in it
    alignas(64) int16_t weight_x[TURN], weight_y[TURN]; // of the second tap, Q15
    int32_t rows_ahead, columns_ahead; // to the taps of AHEAD rows later: sample rows, bytes
};

struct span {
    int32_t lo, hi; // [lo, hi)
};

// Source positions in 1/65536 pixel.
struct turn_limits {
    struct span seen_x, seen_y;   // the pixel shows some of the picture
    struct span inner_x, inner_y; // no tap is clamped
};

struct turn {
    const struct image *src;
    const struct warp *warp;
    struct turn_limits limits;
    struct turn_taps luma, chroma;
    alignas(64) int32_t offset[TURN];
    alignas(64) uint16_t sample[4][TURN]; // 8-bit: in pairs; nv12, nv21: of both chroma components
    alignas(64) int16_t row[3][TURN];     // components with 7 fraction bits centred on 128
    struct levels levels;
};

// --- which columns

// Least source position whose position in samples is p.
static inline int32_t source_of(struct position at, int32_t p)
{
    return p * (1 << at.shift) - at.add;
}

// Source positions with both taps among samples first to last.
static inline struct span span_between(struct position at, int first, int last)
{
    return (struct span){source_of(at, first * WEIGHT_ONE), source_of(at, last * WEIGHT_ONE)};
}

static inline struct span span_both(struct span a, struct span b)
{
    return (struct span){a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
}

// Positions whose nearest pixel centres are in the span.
static inline struct span span_snapped(struct span in)
{
    return (struct span){((in.lo + 65535) & ~65535) - 32768, ((in.hi + 65535) & ~65535) - 32768};
}

static inline struct turn_limits turn_limits_of(const struct warp *warp)
{
    struct turn_limits l = {
        .seen_x = {source_of(warp->luma, (warp->x0 - 1) * WEIGHT_ONE + 1),
                   source_of(warp->luma, warp->x1 * WEIGHT_ONE)},
        .seen_y = {source_of(warp->luma, (warp->y0 - 1) * WEIGHT_ONE + 1),
                   source_of(warp->luma, warp->y1 * WEIGHT_ONE)},
        .inner_x = span_between(warp->luma, warp->x0, warp->x1 - 1),
        .inner_y = span_between(warp->luma, warp->y0, warp->y1 - 1),
    };
    if (chroma_is_read(warp)) {
        const int x = position_sub(warp->chroma_x), y = position_sub(warp->chroma_y);
        l.inner_x =
            span_both(l.inner_x, span_between(warp->chroma_x, warp->x0 >> x, (warp->x1 - 1) >> x));
        l.inner_y =
            span_both(l.inner_y, span_between(warp->chroma_y, warp->y0 >> y, (warp->y1 - 1) >> y));
    }
    const bool nearest = warp->filter == FILTER_NEAREST;
    if (nearest || warp->edge == EDGE_REPEAT) {
        l.seen_x = span_snapped(l.seen_x);
        l.seen_y = span_snapped(l.seen_y);
    }
    if (nearest) {
        l.inner_x = span_snapped(l.inner_x);
        l.inner_y = span_snapped(l.inner_y);
    }
    return l;
}

// Returns the first of n columns at which a monotone table has crossed `limit`.
static inline int crossing(const int32_t *table, int n, int64_t limit, bool rising)
{
    int lo = 0, hi = n;
    while (lo < hi) {
        const int middle = (lo + hi) / 2;
        if ((table[middle] >= limit) == rising)
            hi = middle;
        else
            lo = middle + 1;
    }
    return lo;
}

// Columns whose positions plus `add` are in the span.
static inline struct span columns_in(const int32_t *table, int n, int32_t add, struct span in)
{
    const bool rising = table[n - 1] >= table[0];
    const int64_t lo = (int64_t)in.lo - add, hi = (int64_t)in.hi - add;
    const int64_t first = rising ? table[0] : table[n - 1];
    const int64_t last = rising ? table[n - 1] : table[0];
    if (first >= lo && last < hi)
        return (struct span){0, n};
    if (last < lo || first >= hi)
        return (struct span){0, 0};
    return (struct span){crossing(table, n, rising ? lo : hi, rising),
                         crossing(table, n, rising ? hi : lo, rising)};
}

static inline struct span turn_columns(const struct warp *warp, int x, int y, int n,
                                       struct span in_x, struct span in_y)
{
    const struct span a = columns_in(warp->colx + x, n, warp->rowx[y], in_x);
    const struct span b = columns_in(warp->coly + x, n, warp->rowy[y], in_y);
    const struct span both = span_both(a, b);
    return both.lo < both.hi ? both : (struct span){0, 0};
}

// --- samples

static inline int32_t samples_between(struct position at, int32_t a, int32_t b)
{
    return (position_of(at, b) - position_of(at, a)) >> WEIGHT_BITS;
}

// For the columns of `run`, from x on, of output row y.
static void turn_taps_make(struct turn_taps *t, const struct warp *warp, struct position at_x,
                           struct position at_y, int step, int x, int y, struct span run)
{
    const int32_t *colx = warp->colx + x, *coly = warp->coly + x;
    const int32_t rowx = warp->rowx[y], rowy = warp->rowy[y];
    const bool nearest = warp->filter == FILTER_NEAREST;
    const int32_t add = nearest ? 32768 : 0, keep = nearest ? ~65535 : -1; // position_sampled
    const int far = y + AHEAD < warp->height ? y + AHEAD : y;
    t->rows_ahead = samples_between(at_y, rowy, warp->rowy[far]);
    t->columns_ahead = samples_between(at_x, rowx, warp->rowx[far]) * step;
    for (int i = run.lo; i < run.hi; i++) {
        const int32_t px = position_of(at_x, (colx[i] + rowx + add) & keep);
        const int32_t py = position_of(at_y, (coly[i] + rowy + add) & keep);
        t->column[i] = (px >> WEIGHT_BITS) * step;
        t->row[i] = py >> WEIGHT_BITS;
        t->weight_x[i] = (int16_t)(2 * (px & WEIGHT_MASK));
        t->weight_y[i] = (int16_t)(2 * (py & WEIGHT_MASK));
    }
}

static inline FRAMED_HD uint16_t pair_at(const uint8_t *at, int step)
{
    uint16_t pair;
    if (step != 1)
        return (uint16_t)(at[0] | at[step] << 8);
    memcpy(&pair, at, sizeof pair);
    return pair;
}

// Fetches the samples of the run's columns: 8 bits in pairs, 10 bits one by one.
static inline FRAMED_HD void samples_fetch(struct turn *t, const uint8_t *at, ptrdiff_t stride,
                                           bool wide, int step, struct span run)
{
    for (int i = run.lo; i < run.hi; i++) {
        const uint8_t *top = at + t->offset[i], *bottom = top + stride;
        if (wide) {
            t->sample[0][i] = *(const uint16_t *)top;
            t->sample[1][i] = *(const uint16_t *)bottom;
            t->sample[2][i] = *(const uint16_t *)(top + step);
            t->sample[3][i] = *(const uint16_t *)(bottom + step);
        } else {
            t->sample[0][i] = pair_at(top, step);
            t->sample[1][i] = pair_at(bottom, step);
        }
    }
}

// For adjacent U and V: one load has both taps of both.
static inline FRAMED_HD void chroma_fetch(struct turn *t, const uint8_t *at, ptrdiff_t stride,
                                          struct span run)
{
    alignas(64) uint32_t uvuv[2][TURN];
    for (int i = run.lo; i < run.hi; i++) {
        memcpy(&uvuv[0][i], at + t->offset[i], 4);
        memcpy(&uvuv[1][i], at + t->offset[i] + stride, 4);
    }
    for (int row = 0; row < 2; row++) {
        for (int i = run.lo; i < run.hi; i++) {
            const uint32_t s = uvuv[row][i];
            t->sample[row][i] = (uint16_t)((s & 255) | (s >> 8 & 255 << 8));
            t->sample[row + 2][i] = (uint16_t)((s >> 8 & 255) | (s >> 16 & 255 << 8));
        }
    }
}

// Prefetches lines that a CPU cannot predict: output rows cross source rows at an angle.
static inline FRAMED_HD void samples_expect(const struct turn *t, const uint8_t *at,
                                            ptrdiff_t ahead, struct span run)
{
    for (int i = run.lo; i < run.hi; i += SPACING)
        __builtin_prefetch(at + (t->offset[i] + ahead));
}

static inline FRAMED_HD vec_s16 turn_horizontal(const struct turn *t, enum pixel_format format,
                                                int row, int i, vec_s16 weight)
{
    const vec_s16 samples = load_s16(t->sample[row] + i);
    if (!source_is_10bit(format))
        return horizontal8_lanes(samples, weight);
    return horizontal10_lanes(samples_10bit(format, samples),
                              samples_10bit(format, load_s16(t->sample[row + 2] + i)), weight);
}

static inline FRAMED_HD void turn_component(struct turn *t, int c, enum pixel_format format,
                                            const struct turn_taps *taps, struct span run)
{
    const struct component k = component_of(format, c);
    const struct plane *plane = &t->src->plane[k.plane];
    const int32_t stride = (int32_t)plane->stride;
    const bool paired = format == PIXEL_NV12 || format == PIXEL_NV21;
    const int first = paired && k.offset == 1 ? 2 : 0;
    const bool fetched = paired && c == 2; // together with U
    for (int i = run.lo; !fetched && i < run.hi; i++)
        t->offset[i] = taps->row[i] * stride + taps->column[i];
    if (paired && c == 1)
        chroma_fetch(t, plane->data, stride, run);
    else if (!fetched)
        samples_fetch(t, plane->data + k.offset, stride, source_is_10bit(format), k.step, run);
    if (paired ? c < 2 : k.offset == 0)
        samples_expect(t, plane->data, (ptrdiff_t)taps->rows_ahead * stride + taps->columns_ahead,
                       run);
    for (int i = run.lo / LANES * LANES; i < run.hi; i += LANES) {
        const vec_s16 weight = load_s16(taps->weight_x + i);
        const vec_s16 top = turn_horizontal(t, format, first, i, weight);
        const vec_s16 bottom = turn_horizontal(t, format, first + 1, i, weight);
        store_s16(t->row[c] + i, vertical_lanes(top, bottom, load_s16(taps->weight_y + i)));
    }
}

static inline FRAMED_HD void turn_components(struct turn *t, enum pixel_format format,
                                             struct span run)
{
    if (luma_is_read(t->warp))
        turn_component(t, 0, format, &t->luma, run);
    if (components_end(t->warp, format) == 1)
        return;
    const struct turn_taps *taps = source_is_rgb(format) ? &t->luma : &t->chroma;
    turn_component(t, 1, format, taps, run);
    turn_component(t, 2, format, taps, run);
}

// --- levels

// The run's columns show picture alone; levels are made up to whole registers.
static void turn_inner(struct turn *t, int x, int y, struct span run)
{
    const struct warp *warp = t->warp;
    if (luma_is_read(warp))
        turn_taps_make(&t->luma, warp, warp->luma, warp->luma, component_of(warp->source, 0).step,
                       x, y, run);
    if (chroma_is_read(warp))
        turn_taps_make(&t->chroma, warp, warp->chroma_x, warp->chroma_y,
                       component_of(warp->source, 1).step, x, y, run);
    switch (warp->source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        turn_components(t, format, run);                                                           \
        break;
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        break;
    }
    const struct lines lines[3] = {
        {t->row[0], t->row[0], 0}, {t->row[1], t->row[1], 0}, {t->row[2], t->row[2], 0}};
    run_make(&t->levels, warp, lines, run.lo, run.hi, false, false);
}

static void turn_edge(struct turn *t, int x, int y, struct span run)
{
    const struct warp *warp = t->warp;
    for (int i = run.lo; i < run.hi; i++) {
        uint8_t level[3] = {0};
        warp_levels(t->src, warp, warp->source, warp->colx[x + i] + warp->rowx[y],
                    warp->coly[x + i] + warp->rowy[y], level);
        for (int c = 0; c < 3; c++)
            t->levels.row[c][i] = level[c];
    }
}

// Makes the levels of n pixels from (x, y) on. Returns the columns that show some of the picture.
static inline struct span turn_levels(struct turn *t, int x, int y, int n)
{
    const struct turn_limits *l = &t->limits;
    const struct span seen = turn_columns(t->warp, x, y, n, l->seen_x, l->seen_y);
    struct span inner = turn_columns(t->warp, x, y, n, l->inner_x, l->inner_y);
    if (inner.lo < inner.hi)
        turn_inner(t, x, y, inner);
    else
        inner.lo = inner.hi = seen.lo;
    turn_edge(t, x, y, (struct span){seen.lo, inner.lo});
    turn_edge(t, x, y, (struct span){inner.hi, seen.hi});
    return seen;
}

// True if 32 bits hold the offset of every sample.
static inline bool turn_reaches(const struct image *src)
{
    for (int i = 0; i < pixel_format_planes(src->format); i++) {
        const ptrdiff_t stride = src->plane[i].stride;
        if ((stride < 0 ? -stride : stride) > INT32_MAX / (src->height + 1))
            return false;
    }
    return true;
}

static inline void turn_warp(const struct image *dst, const struct image *src,
                             const struct warp *warp, struct band band, bool filled)
{
    struct elements elements;
    struct turn turn = {.src = src, .warp = warp, .limits = turn_limits_of(warp)};
    elements_init(&elements, dst, warp);
    for (int x = 0; x < warp->width; x += TURN) {
        const int n = warp->width - x < TURN ? warp->width - x : TURN;
        for (int y = band.y0; y < band.y1; y++) {
            const struct span seen = turn_levels(&turn, x, y, n);
            if (!filled) {
                elements_fill(&elements, x, x + seen.lo, y, y + 1);
                elements_fill(&elements, x + seen.hi, x + n, y, y + 1);
            }
            elements_store(&elements, x, y, &turn.levels, seen.lo, seen.hi);
        }
    }
}

#endif
