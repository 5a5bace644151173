// Rows of levels of a strip of output columns, for axes that do not mix: a template, see
// fixed_lanes.h.
#ifndef FRAMED_KERNELS_CPU_WARP_ROWS_H
#define FRAMED_KERNELS_CPU_WARP_ROWS_H

#include "kernels/cpu/fixed_lanes.h"
#include "kernels/cpu/lut_lanes.h"
#include "kernels/warp.h"

// --- positions of a strip's output columns in a source row

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

// --- rows of levels

enum { LEVELS_SPARE = 3 * FLOATS }; // allows reading levels in whole registers

// The last two source rows made for components with the same layout: R, G and B, or U and V, or Y.
struct row_group {
    int first, count; // components
    const struct columns *columns;
    int y[2]; // -1: none
};

// Input of an output register from one component: two rows, and the second's weight in Q15.
struct lines {
    const int16_t *top, *bottom;
    int weight; // 0: the second row is not read
};

// In the tensor's channel order; for gray only row[0] is valid.
struct levels {
    alignas(64) uint8_t row[3][STRIP + LEVELS_SPARE];
};

struct strip {
    const struct image *src;
    const struct warp *warp;
    int x, n;           // output columns [x, x + n); all show some of the picture
    int whole0, whole1; // columns among them that show nothing else
    struct columns luma, chroma;
    const uint16_t *coverage;  // of the columns
    struct plane component[3]; // row 0 of each, at its first sample
    struct row_group group[2];
    alignas(64) int16_t row[3][2][STRIP]; // [component][cached row]
    struct levels levels;
    alignas(64) int16_t level6[3][STRIP];
};

// PICTURE_KEPT: Y, U and V keep their values; PICTURE_KEPT_CHROMA: U and V alone.
enum picture {
    PICTURE_RGB,
    PICTURE_YUV,
    PICTURE_RGB_GRAY,
    PICTURE_LUMA,
    PICTURE_KEPT,
    PICTURE_KEPT_CHROMA
};

static inline enum picture picture_of(const struct warp *warp)
{
    const bool gray = gray_is_direct(warp);
    if (samples_are_kept(warp))
        return warp->order == ORDER_UV ? PICTURE_KEPT_CHROMA : PICTURE_KEPT;
    if (source_is_rgb(warp->source))
        return gray ? PICTURE_RGB_GRAY : PICTURE_RGB;
    return gray || !source_has_chroma(warp->source) ? PICTURE_LUMA : PICTURE_YUV;
}

static inline bool luma_is_read(const struct warp *warp)
{
    return components_first(warp) == 0;
}

// True if YUV chroma is read, at its own positions.
static inline bool chroma_is_read(const struct warp *warp)
{
    return !source_is_rgb(warp->source) && components_end(warp, warp->source) == 3;
}

// `coverage`: of all columns of the result.
static inline void strip_place(struct strip *s, const struct image *src, const struct warp *warp,
                               const uint16_t *coverage, int x, int n)
{
    s->src = src;
    s->warp = warp;
    s->x = x;
    s->n = n;
    s->coverage = coverage + x;
    for (s->whole0 = 0; s->whole0 < n && s->coverage[s->whole0] < WEIGHT_ONE;)
        s->whole0++;
    for (s->whole1 = n; s->whole1 > s->whole0 && s->coverage[s->whole1 - 1] < WEIGHT_ONE;)
        s->whole1--;
}

static inline void strip_init(struct strip *s, const struct image *src, const struct warp *warp,
                              int x, int n)
{
    strip_place(s, src, warp, warp->coverage_columns, x, n);
    for (int c = 0; c < 3; c++) {
        const struct component k = component_of(src->format, c);
        s->component[c] = (struct plane){component_row(src, k, 0), src->plane[k.plane].stride};
    }
    columns_init(&s->luma, src, warp, 0, x, n);
    if (chroma_is_read(warp))
        columns_init(&s->chroma, src, warp, 1, x, n);
    else if (samples_are_kept(warp))
        memset(s->row[1][0], 0, sizeof s->row[1][0]); // chroma of gray
    s->group[0] = (struct row_group){0, source_is_rgb(src->format) ? 3 : 1, &s->luma, {-1, -1}};
    s->group[1] = (struct row_group){1, 2, &s->chroma, {-1, -1}};
}

// Returns the index of the group's row y, made if necessary; does not overwrite row `kept`.
static inline int strip_row(struct strip *s, struct row_group *group, int y, int kept)
{
    for (int i = 0; i < 2; i++)
        if (group->y[i] == y)
            return i;
    const int i = group->y[0] == kept;
    struct row_set rows = {.count = group->count};
    for (int k = 0; k < group->count; k++) {
        const struct plane *plane = &s->component[group->first + k];
        rows.from[k] = plane->data + (ptrdiff_t)y * plane->stride;
        rows.to[k] = s->row[group->first + k][i];
    }
    rows_make(&rows, group->columns, s->warp->source, padded(s->n));
    group->y[i] = y;
    return i;
}

static inline void strip_lines(struct strip *s, struct row_group *group, const uint16_t y[2],
                               int weight, struct lines lines[3])
{
    const bool both = y[0] != y[1];
    const int top = strip_row(s, group, y[0], both ? y[1] : -1);
    const int bottom = both ? strip_row(s, group, y[1], y[0]) : top;
    for (int c = group->first; c < group->first + group->count; c++)
        lines[c] = (struct lines){s->row[c][top], s->row[c][bottom], both ? 2 * weight : 0};
}

// Coefficients from samples to rgb6, in registers. The same copies serve a whole row, because the
// compiler cannot exclude that stores change the originals.
struct colour_registers {
    struct rgb_registers rgb; // of YUV
    vec_s16 gray[3];
    vec_s16 weight, chroma_weight; // of the second row
    bool both, chroma_both;        // use the second row; pass constants for code without branches
};

static inline FRAMED_HD struct colour_registers colour_registers_of(const struct warp *warp,
                                                                    const struct lines lines[3])
{
    struct colour_registers s = {.rgb = rgb_registers_of(&warp->rgb)};
    for (int i = 0; i < 3; i++)
        s.gray[i] = all_s16(warp->gray[i]);
    s.weight = all_s16(lines[0].weight);
    s.chroma_weight = all_s16(lines[1].weight);
    return s;
}

static inline FRAMED_HD vec_s16 lines_at(struct lines lines, int i, vec_s16 weight, bool both)
{
    const vec_s16 top = load_s16(lines.top + i);
    return both ? vertical_lanes(top, load_s16(lines.bottom + i), weight) : top;
}

// LANES columns from i on in rgb6; gray from RGB is in r alone.
static inline FRAMED_HD struct rgb6_lanes
lanes6(const struct colour_registers *c, const struct lines lines[3], int i, enum picture picture)
{
    const bool chroma = picture == PICTURE_KEPT_CHROMA;
    const vec_s16 first = chroma ? all_s16(0) : lines_at(lines[0], i, c->weight, c->both);
    struct rgb6_lanes q = {first, first, first};
    if (picture == PICTURE_LUMA) {
        q.r = q.g = q.b = luma6_lanes(&c->rgb, first);
        return q;
    }
    const vec_s16 second = lines_at(lines[1], i, c->chroma_weight, c->chroma_both);
    const vec_s16 third = lines_at(lines[2], i, c->chroma_weight, c->chroma_both);
    if (picture == PICTURE_YUV)
        return yuv_to_rgb6_lanes(&c->rgb, first, second, third);
    q.r = channel6_lanes(first);
    q.g = channel6_lanes(second);
    q.b = channel6_lanes(third);
    if (chroma) {
        q.r = q.g;
        q.g = q.b;
    }
    if (picture == PICTURE_RGB_GRAY)
        q.r = gray6_lanes(q, c->gray);
    return q;
}

// Makes the levels of columns [from, to), rounded out to whole registers.
static inline FRAMED_HD void levels_make(struct levels *levels, const struct warp *warp,
                                         const struct lines row[3], int from, int to,
                                         enum picture picture, bool both, bool chroma_both)
{
    const struct lines lines[3] = {row[0], row[1], row[2]};
    const bool bgr = warp->order == ORDER_BGR;
    uint8_t *r = levels->row[bgr ? 2 : 0], *g = levels->row[1], *b = levels->row[bgr ? 0 : 2];
    struct colour_registers colours = colour_registers_of(warp, row);
    colours.both = both;
    colours.chroma_both = chroma_both;
    for (int i = from / PIXELS * PIXELS; i < to; i += PIXELS) {
        const struct rgb6_lanes p = lanes6(&colours, lines, i, picture);
        const struct rgb6_lanes q = lanes6(&colours, lines, i + LANES, picture);
        store_u8(r + i, pack_level6(p.r, q.r));
        if (picture == PICTURE_RGB_GRAY || (picture == PICTURE_LUMA && gray_is_direct(warp)))
            continue;
        store_u8(g + i, pack_level6(p.g, q.g));
        if (picture == PICTURE_KEPT_CHROMA)
            continue;
        store_u8(b + i, pack_level6(p.b, q.b));
    }
}

// The same in rgb6, not clamped.
static inline FRAMED_HD void levels6_make(struct strip *s, const struct lines lines[3], int from,
                                          int to, enum picture picture)
{
    const bool bgr = s->warp->order == ORDER_BGR;
    struct colour_registers colours = colour_registers_of(s->warp, lines);
    colours.both = colours.chroma_both = true;
    for (int i = from / LANES * LANES; i < to; i += LANES) {
        const struct rgb6_lanes q = lanes6(&colours, lines, i, picture);
        store_s16(s->level6[bgr ? 2 : 0] + i, q.r);
        store_s16(s->level6[1] + i, q.g);
        store_s16(s->level6[bgr ? 0 : 2] + i, q.b);
    }
}

#define FOR_EACH_PICTURE(X)                                                                        \
    X(PICTURE_RGB)                                                                                 \
    X(PICTURE_YUV)                                                                                 \
    X(PICTURE_RGB_GRAY)                                                                            \
    X(PICTURE_LUMA)                                                                                \
    X(PICTURE_KEPT)                                                                                \
    X(PICTURE_KEPT_CHROMA)

// Applies the warp's LUT to columns [from, to), rounded out to whole registers.
static __attribute__((noinline)) void levels_look_up(struct levels *levels, const struct warp *warp,
                                                     int from, int to)
{
    const bool bgr = warp->order == ORDER_BGR;
    const int first = from / PIXELS * PIXELS;
    uint8_t *r = levels->row[bgr ? 2 : 0], *g = levels->row[1], *b = levels->row[bgr ? 0 : 2];
    lut_planes(warp->lut, r + first, g + first, b + first, to - first);
    for (int i = first; warp->order == ORDER_GRAY && i < to; i++) {
        const struct rgb6 q = {r[i] * 64 + LEVEL6_HALF, g[i] * 64 + LEVEL6_HALF,
                               b[i] * 64 + LEVEL6_HALF};
        r[i] = (uint8_t)level_of(gray6(q, warp->gray));
    }
}

static inline FRAMED_HD void run_make(struct levels *levels, const struct warp *warp,
                                      const struct lines lines[3], int from, int to, bool both,
                                      bool chroma_both)
{
    switch (picture_of(warp)) {
#define CASE(picture)                                                                              \
    case picture:                                                                                  \
        levels_make(levels, warp, lines, from, to, picture, both, chroma_both);                    \
        break;
        FOR_EACH_PICTURE(CASE)
#undef CASE
    }
    if (warp->lut)
        levels_look_up(levels, warp, from, to);
}

// Converts the levels after a LUT to rgb6.
static void levels6_looked_up(struct strip *s, int from, int to)
{
    for (int c = 0; c < s->warp->channels; c++)
        for (int i = from; i < to; i++)
            s->level6[c][i] = (int16_t)(s->levels.row[c][i] * 64 + LEVEL6_HALF);
}

// Blends columns [from, to) of picture and fill; `row`: the row's share of picture.
static void run_blend(struct strip *s, const struct lines lines[3], int from, int to, int row)
{
    if (s->warp->lut)
        levels6_looked_up(s, from, to);
    else
        switch (picture_of(s->warp)) {
#define CASE(picture)                                                                              \
    case picture:                                                                                  \
        levels6_make(s, lines, from, to, picture);                                                 \
        break;
            FOR_EACH_PICTURE(CASE)
#undef CASE
        }
    for (int c = 0; c < s->warp->channels; c++)
        for (int i = from; i < to; i++)
            s->levels.row[c][i] = (uint8_t)level_blended(s->level6[c][i], s->warp->fill[c],
                                                         coverage_of(s->coverage[i], row));
}

static void run_levels(struct strip *s, const struct lines lines[3], int from, int to)
{
    const bool luma = lines[0].weight != 0, chroma = lines[1].weight != 0;
    if (luma && chroma)
        run_make(&s->levels, s->warp, lines, from, to, true, true);
    else if (luma)
        run_make(&s->levels, s->warp, lines, from, to, true, false);
    else if (chroma)
        run_make(&s->levels, s->warp, lines, from, to, false, true);
    else
        run_make(&s->levels, s->warp, lines, from, to, false, false);
}

// Makes the levels of a row with that `coverage`. With a LUT, all are made before any is blended.
static inline void strip_finish(struct strip *s, const struct lines lines[3], int coverage)
{
    if (s->warp->lut)
        run_levels(s, lines, 0, s->n);
    if (coverage < WEIGHT_ONE) {
        run_blend(s, lines, 0, s->n, coverage);
        return;
    }
    if (!s->warp->lut)
        run_levels(s, lines, s->whole0, s->whole1);
    if (s->whole0 > 0)
        run_blend(s, lines, 0, s->whole0, coverage);
    if (s->whole1 < s->n)
        run_blend(s, lines, s->whole1, s->n, coverage);
}

// Makes the strip's levels of an output row that shows some of the picture.
static inline void strip_levels(struct strip *s, const struct warp_row *row)
{
    const struct warp *warp = s->warp;
    const struct lines none = {s->row[1][0], s->row[1][0], 0};
    struct lines lines[3] = {none, none, none};
    if (luma_is_read(warp))
        strip_lines(s, &s->group[0], row->luma, row->luma_weight, lines);
    if (chroma_is_read(warp))
        strip_lines(s, &s->group[1], row->chroma, row->chroma_weight, lines);
    else if (picture_of(warp) == PICTURE_LUMA)
        lines[1] = lines[2] = lines[0];
    strip_finish(s, lines, row->coverage);
}

#endif
