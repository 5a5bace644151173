// Rows of levels of a strip of output columns where a filter weighs all samples under a pixel: a
// template, see fixed_lanes.h. For each output row the samples of its source rows are summed up
// column by column, which gives one row as wide as the source; then that row's samples are, pixel
// by pixel.
#ifndef FRAMED_KERNELS_CPU_WARP_FILTERED_H
#define FRAMED_KERNELS_CPU_WARP_FILTERED_H

#include "kernels/cpu/warp_rows.h"
#include "kernels/warp_pixel.h"
#if defined(__aarch64__)
#include "kernels/cpu/filter_neon.h"
#else
#include "kernels/cpu/filter_x86.h"
#endif

enum {
    SUMS_SPARE = 64, // samples: sums are stored, and read, a whole register at a time
    SUMS = IMAGE_SIDE_MAX + SUMS_SPARE,
    PIECE = 1024, // samples that are put apart, or together, at a time
    COLUMNS_SPARE = 16,
};

// --- columns: the samples of some rows of one plane, each row times its weight, as 7 fraction bits
// centred on 128

// Rows of one plane from the first one on.
struct weighed_rows {
    const uint8_t *first;
    ptrdiff_t stride;
    int row_bytes, count, bits;
    const int16_t *weights;
};

// One row that has all the weight.
static inline FRAMED_HD void column_copy(const struct weighed_rows *rows, int at, int16_t *to)
{
    for (int i = 0; i < PIXELS; i++)
        to[i] = (int16_t)((rows->first[at + i] - 128) * 128);
}

enum { PAIRS_FEW = 4 };

// Weights of 12 bits: high parts of 7 and low ones of 5.
struct few_weights {
    vec_u8 high[PAIRS_FEW], low[PAIRS_FEW];
};

static inline FRAMED_HD struct few_weights few_weights_of(const struct weighed_rows *rows,
                                                          int pairs)
{
    struct few_weights w;
    for (int k = 0; k < pairs; k++) {
        const int w0 = rows->weights[2 * k], w1 = rows->weights[2 * k + 1];
        w.high[k] = weights_of_pair(w0 >> 5, w1 >> 5);
        w.low[k] = weights_of_pair(w0 & 31, w1 & 31);
    }
    return w;
}

// PIXELS bytes of 8 rows at most, where `both` of an even number: no sum leaves 16 bits.
static inline FRAMED_HD void column_few(const uint8_t *row, ptrdiff_t stride, int16_t *to,
                                        const struct few_weights *w, int pairs, bool both)
{
    struct column_sums sums = {0};
    for (int k = 0; k < pairs; k++, row += 2 * stride) {
        const vec_u8 a = load_u8(row);
        const vec_u8 b = both || k < pairs - 1 ? load_u8(row + stride) : a;
        column_sums_add(&sums, a, b, w->high[k], w->low[k], false);
    }
    vec_s16 v[2];
    for (int i = 0; i < 2; i++)
        v[i] = (vec_s16)(sums.high[i] + ((sums.low[i] + 16) >> 5)) - 16384;
    columns_store(to, v[0], v[1]);
}

// Weights of 14 bits in halves of 7, of any number of rows: what the low parts add up to is carried
// over pair by pair.
static inline FRAMED_HD void column_many(const struct weighed_rows *rows, int at, int16_t *to)
{
    struct column_sums sums = {0};
    const uint8_t *row = rows->first + at;
    for (int k = 0; k < rows->count; k += 2, row += 2 * rows->stride) {
        const int w0 = rows->weights[k], w1 = k + 1 < rows->count ? rows->weights[k + 1] : 0;
        const vec_u8 a = load_u8(row) ^ 128, b = w1 ? load_u8(row + rows->stride) ^ 128 : a;
        column_sums_add(&sums, a, b, weights_of_pair(w0 >> 7, w1 >> 7),
                        weights_of_pair(w0 & 127, w1 & 127), true);
        for (int i = 0; i < 2; i++) {
            sums.high[i] += (vec_u16)((vec_s16)sums.low[i] >> 7);
            sums.low[i] &= 127;
        }
    }
    vec_s16 v[2];
    for (int i = 0; i < 2; i++)
        v[i] = (vec_s16)(sums.high[i] + ((sums.low[i] + 64) >> 7));
    columns_store(to, v[0], v[1]);
}

static inline FRAMED_HD void columns_few(const struct weighed_rows *rows, int from, int end,
                                         int16_t *to, int pairs, bool both)
{
    const struct few_weights weights = few_weights_of(rows, pairs);
    const int limit = rows->row_bytes - PIXELS;
    const uint8_t *first = rows->first;
    const ptrdiff_t stride = rows->stride;
    for (int i = from; i < end; i += PIXELS) {
        const int at = i < limit ? i : limit;
        column_few(first + at, stride, to + at - from, &weights, pairs, both);
    }
}

// Bytes [from, end) of 8-bit rows, a whole register at a time where rows hold one: then `from` lies
// no less before their end.
static void columns8(const struct weighed_rows *rows, int from, int end, int16_t *to)
{
    if (rows->row_bytes < PIXELS) {
        for (int i = 0; i < rows->row_bytes; i++) {
            int sum = 0;
            for (int k = 0; k < rows->count; k++)
                sum += rows->weights[k] * rows->first[k * rows->stride + i];
            to[i] = (int16_t)filtered_column8(sum, rows->bits);
        }
        return;
    }
    const bool both = rows->count % 2 == 0;
    const int limit = rows->row_bytes - PIXELS;
    if (rows->count == 1 || rows->bits == WEIGHT_BITS) {
        for (int i = from; i < end; i += PIXELS) {
            const int at = i < limit ? i : limit;
            if (rows->count == 1)
                column_copy(rows, at, to + at - from);
            else
                column_many(rows, at, to + at - from);
        }
        return;
    }
    switch ((rows->count + 1) / 2) {
#define CASE(pairs)                                                                                \
    case pairs:                                                                                    \
        if (both)                                                                                  \
            columns_few(rows, from, end, to, pairs, true);                                         \
        else                                                                                       \
            columns_few(rows, from, end, to, pairs, false);                                        \
        break;
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
#undef CASE
    }
}

// 16-bit words [from, end) of rows of 10-bit samples.
static void columns10(const struct weighed_rows *rows, enum pixel_format format, int from, int end,
                      int16_t *to)
{
    enum { SOME = 256 };
    const int shift = pixel_layout_of(format).shift;
    for (; from < end; from += SOME, to += SOME) {
        const int n = end - from < SOME ? end - from : SOME;
        int32_t sum[SOME] = {0};
        for (int k = 0; k < rows->count; k++) {
            const uint16_t *row = (const uint16_t *)(rows->first + k * rows->stride) + from;
            const int16_t weight = rows->weights[k];
            for (int i = 0; i < n; i++)
                sum[i] += weight * (int16_t)(row[i] >> shift & 1023);
        }
        for (int i = 0; i < n; i++)
            to[i] = (int16_t)filtered_column10(sum[i], rows->bits);
    }
}

// Samples [from, end), `step` words apart. Returns the sample that to[0] is of.
static inline int columns_of(const struct weighed_rows *rows, enum pixel_format format, int step,
                             int from, int end, int16_t *to)
{
    if (source_is_10bit(format)) {
        columns10(rows, format, from * step, end * step, to);
        return from;
    }
    const int limit = rows->row_bytes < PIXELS ? 0 : (rows->row_bytes - PIXELS) / step;
    const int last = end * step < rows->row_bytes ? end * step : rows->row_bytes;
    from = from < limit ? from : limit;
    columns8(rows, from * step, last, to);
    return from;
}

// --- a strip

// Components that lie alike: Y, or U and V, or R, G and B.
struct component_group {
    int first, count;
    const struct filter_axis *x, *y;
    int from, end;                     // samples that the strip's columns read
    int most;                          // of one column
    int base;                          // the sample that sums[0] is of
    int16_t *sums;                     // of each component, or of U and V by turns
    int32_t at[STRIP + COLUMNS_SPARE]; // where in them a column's samples start
#ifdef WINDOWS
    bool windowed;
    struct windows windows;
#endif
};

struct filtered_strip {
    struct strip strip;
    struct component_group group[2];
    int groups;
    // Of R, G and B, or of Y and then of U and V by turns. Behind a column's samples as many as the
    // strip's widest column has are read, and weigh nothing.
    alignas(64) int16_t sums[3 * SUMS + 2 * IMAGE_SIDE_MAX];
    alignas(64) int16_t piece[4 * PIECE + 2 * SUMS_SPARE];
};

// Words from one sample of a component to the next.
static inline int words_of(enum pixel_format format, int c)
{
    return component_of(format, c).step / (source_is_10bit(format) ? 2 : 1);
}

// Whether the group's sums can be made in place: its components are alone in their planes, and not
// to be put together.
static inline bool group_is_direct(const struct component_group *g, enum pixel_format format)
{
    return words_of(format, g->first) == (g->count == 2 ? 2 : 1);
}

static inline void group_init(struct component_group *g, const struct strip *s, int first,
                              int count, const struct filter_axis *x, const struct filter_axis *y,
                              int16_t *sums)
{
    const enum pixel_format format = s->warp->source;
    g->first = first;
    g->count = count;
    g->x = x;
    g->y = y;
    g->sums = sums;
    g->from = INT32_MAX;
    g->end = g->most = 0;
    for (int i = s->x; i < s->x + s->n; i++) {
        const struct filter_span span = x->spans[i];
        g->from = span.first < g->from ? span.first : g->from;
        g->end = span.first + span.count > g->end ? span.first + span.count : g->end;
        g->most = span.count > g->most ? span.count : g->most;
    }
    g->base = g->from;
    if (group_is_direct(g, format) && !source_is_10bit(format)) {
        const int plane = component_of(format, first).plane;
        const int row_bytes = (int)plane_row_bytes(s->src->format, plane, s->src->width);
        const int limit = row_bytes < PIXELS ? 0 : (row_bytes - PIXELS) / words_of(format, first);
        g->base = g->from < limit ? g->from : limit;
    }
    for (int i = 0; i < s->n + COLUMNS_SPARE; i++)
        g->at[i] = x->spans[s->x + (i < s->n ? i : s->n - 1)].first - g->base;
#ifdef WINDOWS
    g->windowed = windows_init(&g->windows, g->at, x->weights + (ptrdiff_t)s->x * x->stride,
                               x->stride, g->most, s->n, count == 2 ? 2 : 1);
#endif
}

static inline void filtered_strip_init(struct filtered_strip *s, const struct image *src,
                                       const struct warp *warp, int x, int n)
{
    const struct filter_tables *f = &warp->filtered;
    const enum picture picture = picture_of(warp);
    strip_place(&s->strip, src, warp, f->coverage_x, x, n);
    s->groups = picture == PICTURE_YUV ? 2 : 1;
    group_init(&s->group[0], &s->strip, 0, source_is_rgb(warp->source) ? 3 : 1, &f->luma_x,
               &f->luma_y, s->sums);
    if (s->groups == 2)
        group_init(&s->group[1], &s->strip, 1, 2, &f->chroma_x, &f->chroma_y, s->sums + SUMS);
}

static inline struct weighed_rows rows_at(const struct image *src, int c,
                                          const struct filter_axis *axis, int y)
{
    const int plane = component_of(src->format, c).plane;
    const struct filter_span span = axis->spans[y];
    const struct plane *p = &src->plane[plane];
    return (struct weighed_rows){p->data + span.first * p->stride,
                                 p->stride,
                                 (int)plane_row_bytes(src->format, plane, src->width),
                                 span.count,
                                 axis->bits,
                                 axis->weights + (ptrdiff_t)y * axis->stride};
}

static inline void sums_direct(const struct filtered_strip *s, struct component_group *g, int y)
{
    const struct image *src = s->strip.src;
    const int planes = g->count == 3 ? 3 : 1;
    for (int c = 0; c < planes; c++) {
        const struct weighed_rows rows = rows_at(src, g->first + c, g->y, y);
        columns_of(&rows, s->strip.warp->source, words_of(src->format, g->first), g->from, g->end,
                   g->sums + c * SUMS);
    }
}

// U and V out of planes of their own, by turns.
static inline void sums_together(struct filtered_strip *s, struct component_group *g, int y)
{
    const struct image *src = s->strip.src;
    const struct weighed_rows u = rows_at(src, 1, g->y, y), v = rows_at(src, 2, g->y, y);
    int16_t *second = s->piece + PIECE + SUMS_SPARE;
    for (int from = g->from; from < g->end; from += PIECE) {
        const int end = g->end - from < PIECE ? g->end : from + PIECE;
        const int at = from - columns_of(&u, s->strip.warp->source, 1, from, end, s->piece);
        columns_of(&v, s->strip.warp->source, 1, from, end, second);
        int16_t *to = g->sums + 2 * (from - g->base);
        for (int i = 0; i < end - from; i += LANES)
            store_zipped(to + 2 * i, load_s16(s->piece + at + i), load_s16(second + at + i));
    }
}

// Components out of one plane that holds others too.
static inline void sums_apart(struct filtered_strip *s, struct component_group *g, int y)
{
    const struct image *src = s->strip.src;
    const struct weighed_rows rows = rows_at(src, g->first, g->y, y);
    const int step = words_of(src->format, g->first), turns = g->count == 2 ? 2 : 1;
    for (int from = g->from; from < g->end; from += PIECE) {
        const int end = g->end - from < PIECE ? g->end : from + PIECE;
        const int base = columns_of(&rows, s->strip.warp->source, step, from, end, s->piece);
        for (int c = 0; c < g->count; c++) {
            const int16_t *piece =
                s->piece + (from - base) * step + component_of(src->format, g->first + c).offset;
            int16_t *to = g->sums + (turns == 2 ? c : c * SUMS) + (from - g->base) * turns;
            for (int i = 0; i < end - from; i++)
                to[i * turns] = piece[i * step];
        }
    }
}

// Rows of the strip's samples that the group's first and second component, in the order of memory,
// are to lie in.
static inline void two_rows(struct filtered_strip *s, const struct component_group *g,
                            int16_t *ret[2])
{
    const enum pixel_format format = s->strip.src->format;
    const bool swapped = group_is_direct(g, format) && component_of(format, 1).offset > 0;
    ret[0] = s->strip.row[swapped ? 2 : 1][0];
    ret[1] = s->strip.row[swapped ? 1 : 2][0];
}

#ifdef WINDOWS
static inline FRAMED_HD void group_windows_of(struct filtered_strip *s,
                                              const struct component_group *g, int pairs)
{
    int16_t *two[2];
    two_rows(s, g, two);
    if (g->count == 2)
        for (int c = 0; c < 2; c++)
            windows_make(two[c], g->sums, &g->windows, s->strip.n, 2, c, pairs);
    else
        for (int c = 0; c < g->count; c++)
            windows_make(s->strip.row[c][0], g->sums + c * SUMS, &g->windows, s->strip.n, 1, 0,
                         pairs);
}

static inline void group_windows(struct filtered_strip *s, const struct component_group *g)
{
    switch ((g->most + 1) / 2) {
    case 1:
        group_windows_of(s, g, 1);
        break;
    case 2:
        group_windows_of(s, g, 2);
        break;
    case 3:
        group_windows_of(s, g, 3);
        break;
    default:
        group_windows_of(s, g, 4);
    }
}
#endif

// The sums of the group's columns: its samples in all columns of the strip.
static inline FRAMED_HD void group_rows(struct filtered_strip *s, const struct component_group *g,
                                        int stride, int most)
{
    const int16_t *weights = g->x->weights + (ptrdiff_t)s->strip.x * stride;
    int16_t(*row)[2][STRIP] = s->strip.row;
    if (g->count == 2) {
        int16_t *two[2];
        two_rows(s, g, two);
        for (int i = 0; i < s->strip.n; i += DOTS)
            dots_make_two(two[0] + i, two[1] + i, g->sums, g->at + i,
                          weights + (ptrdiff_t)i * stride, stride, most);
        return;
    }
    for (int c = 0; c < g->count; c++)
        for (int i = 0; i < s->strip.n; i += DOTS)
            dots_make(row[c][0] + i, g->sums + c * SUMS, g->at + i, weights + (ptrdiff_t)i * stride,
                      stride, most);
}

// Output row y's.
static inline void group_make(struct filtered_strip *s, struct component_group *g, int y)
{
    const enum pixel_format format = s->strip.src->format;
    const int other = component_of(format, 2).plane;
    if (group_is_direct(g, format))
        sums_direct(s, g, y);
    else if (g->count == 2 && component_of(format, 1).plane != other)
        sums_together(s, g, y);
    else
        sums_apart(s, g, y);
#ifdef WINDOWS
    if (g->windowed) {
        group_windows(s, g);
        return;
    }
#endif
    if (g->x->stride > 8)
        group_rows(s, g, g->x->stride, g->most);
    else if (g->most > 4)
        group_rows(s, g, 8, 8);
    else
        group_rows(s, g, 8, 4);
}

// The strip's levels of output row y, which sees some of the picture.
static inline void filtered_strip_levels(struct filtered_strip *s, int y)
{
    struct lines lines[3];
    for (int i = 0; i < s->groups; i++)
        group_make(s, &s->group[i], y);
    for (int c = 0; c < 3; c++) {
        const int16_t *row =
            s->strip.row[components_read(s->strip.warp, s->strip.warp->source) == 3 ? c : 0][0];
        lines[c] = (struct lines){row, row, 0};
    }
    strip_finish(&s->strip, lines, s->strip.warp->filtered.coverage_y[y]);
}

#endif
