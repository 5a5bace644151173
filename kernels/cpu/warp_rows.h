// Rows of levels of a strip of output columns, for axes that do not mix: a template, see
// fixed_lanes.h.
#ifndef FRAMED_KERNELS_CPU_WARP_ROWS_H
#define FRAMED_KERNELS_CPU_WARP_ROWS_H

#include "kernels/cpu/lut_planes.h"
#include "kernels/cpu/warp_columns.h"
#include "kernels/warp.h"

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
