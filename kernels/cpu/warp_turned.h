// Rows of levels where the axes mix: rotation, skew, quarter turns. If no tap is clamped, samples
// are fetched one by one and everything else is in wide registers; pixels at the picture's edges
// are made like the reference's. A template, see fixed_lanes.h.
#ifndef FRAMED_KERNELS_CPU_WARP_TURNED_H
#define FRAMED_KERNELS_CPU_WARP_TURNED_H

#include "kernels/cpu/warp_elements.h"

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
