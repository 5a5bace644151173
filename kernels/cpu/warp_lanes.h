// warp in wide registers: a template, see fixed_lanes.h. A band is made in strips of columns, each
// row by row, so that a strip's source rows stay in the cache.
#ifndef FRAMED_KERNELS_CPU_WARP_LANES_H
#define FRAMED_KERNELS_CPU_WARP_LANES_H

#include "kernels/cpu/warp_sums.h"
#include "kernels/cpu/warp_turned.h"

// --- rows of levels with a filter that weights all samples under a pixel. For each output row, the
// samples of its source rows are summed by column, which gives one row as wide as the source; then
// that row's samples are summed by pixel.

enum {
    SUMS = IMAGE_SIDE_MAX + 2 * PIXELS, // per component: blocks are stored whole
    SUMS_BEHIND = IMAGE_SIDE_MAX,
};

// --- a strip

// Components with the same layout: Y, or U and V, or R, G and B.
struct component_group {
    int first, count;
    const struct filter_axis *x;
    int from, end;     // samples read by the strip's columns
    int most;          // samples of one column
    int16_t *sums;     // of its first component; the others follow at intervals of SUMS
    int32_t at[STRIP]; // start of a column's samples in `sums`
#ifdef WINDOWS
    bool windowed;
    struct windows windows;
#endif
};

struct filtered_strip {
    struct strip strip;
    struct component_group group[2]; // used from `first` on
    int first, groups, passes;
    struct column_pass pass[PLANES_MAX];
    // Per component. As many samples as the widest column has are read after a column's start; the
    // extra ones have weight 0.
    alignas(64) int16_t sums[COMPONENTS_MAX * SUMS + SUMS_BEHIND];
    alignas(64) int16_t spare[QUARTER];
};
#ifdef WINDOWS
_Static_assert((int)WINDOW_STRIP == (int)STRIP, "windows of all columns");
#endif

static inline void group_init(struct component_group *g, const struct strip *s, int first,
                              int count, const struct filter_axis *x)
{
    g->first = first;
    g->count = count;
    g->x = x;
    g->from = INT32_MAX;
    g->end = g->most = 0;
    for (int i = s->x; i < s->x + s->n; i++) {
        const struct filter_span span = x->spans[i];
        g->from = span.first < g->from ? span.first : g->from;
        g->end = span.first + span.count > g->end ? span.first + span.count : g->end;
        g->most = span.count > g->most ? span.count : g->most;
    }
}

// Returns the strip's group that contains component c.
static inline struct component_group *group_of(struct filtered_strip *s, int c)
{
    return &s->group[c >= s->group[0].count];
}

// Makes the pass over plane i; it may be empty.
static inline void pass_init(struct filtered_strip *s, struct column_pass *pass, int i)
{
    const struct warp *warp = s->strip.warp;
    const struct filter_tables *f = &warp->filtered;
    const int bytes = sample_bytes_of(warp->source);
    *pass = (struct column_pass){.format = warp->source, .plane = i, .spare = s->spare};
    pass->unit = plane_unit(warp->source, i);
    pass->from = INT32_MAX;
    for (int c = components_first(warp); c < components_end(warp, warp->source); c++) {
        const struct component k = component_of(warp->source, c);
        const struct component_group *g = group_of(s, c);
        const int samples = pass->unit * bytes / k.step; // of a unit
        if (k.plane != i)
            continue;
        pass->row[pass->rows++] = (struct column_row){s->sums + c * SUMS, k};
        pass->from = g->from / samples < pass->from ? g->from / samples : pass->from;
        pass->end = (g->end + samples - 1) / samples > pass->end ? (g->end + samples - 1) / samples
                                                                 : pass->end;
        // components in one plane share their rows
        pass->y = c == 0 || source_is_rgb(warp->source) ? &f->luma_y : &f->chroma_y;
    }
    if (pass->rows == 0)
        return;
    pass_place(pass, s->strip.src);
    pass_quarters(pass);
    for (int r = 0; r < pass->rows; r++) {
        struct component_group *g = group_of(s, (int)((pass->row[r].to - s->sums) / SUMS));
        const int base = pass->base * (pass->unit * bytes / pass->row[r].of.step);
        for (int k = 0; k < padded(s->strip.n); k++) {
            const int x = s->strip.x + (k < s->strip.n ? k : s->strip.n - 1);
            g->at[k] = g->x->spans[x].first - base;
        }
    }
}

static inline void filtered_strip_init(struct filtered_strip *s, const struct image *src,
                                       const struct warp *warp, int x, int n)
{
    const struct filter_tables *f = &warp->filtered;
    strip_place(&s->strip, src, warp, f->coverage_x, x, n);
    s->first = luma_is_read(warp) ? 0 : 1;
    s->groups = chroma_is_read(warp) ? 2 : 1;
    s->group[0].count = 1;
    if (s->first == 0)
        group_init(&s->group[0], &s->strip, 0, source_is_rgb(warp->source) ? 3 : 1, &f->luma_x);
    if (s->groups == 2)
        group_init(&s->group[1], &s->strip, 1, 2, &f->chroma_x);
    else if (samples_are_kept(warp))
        for (int c = 1; c < 3; c++)
            memset(s->strip.row[c][0], 0, sizeof s->strip.row[c][0]); // chroma of gray
    s->passes = 0;
    for (int i = 0; i < pixel_format_planes(warp->source); i++) {
        pass_init(s, &s->pass[s->passes], i);
        s->passes += s->pass[s->passes].rows > 0;
    }
    for (int i = s->first; i < s->groups; i++) {
        struct component_group *g = &s->group[i];
        g->sums = s->sums + g->first * SUMS;
#ifdef WINDOWS
        g->windowed = windows_init(&g->windows, g->at, g->x->spans + x,
                                   g->x->weights + (ptrdiff_t)x * g->x->stride, g->x->stride, n);
#endif
    }
}

// Sums the group's samples for all columns of the strip.
static inline FRAMED_HD void group_rows(struct filtered_strip *s, const struct component_group *g,
                                        int stride, int most)
{
    const int16_t *weights = g->x->weights + (ptrdiff_t)s->strip.x * stride;
    for (int c = 0; c < g->count; c++)
        for (int i = 0; i < s->strip.n; i += DOTS)
            dots_make(s->strip.row[g->first + c][0] + i, g->sums + c * SUMS, g->at + i,
                      weights + (ptrdiff_t)i * stride, stride, most);
}

static inline void group_make(struct filtered_strip *s, const struct component_group *g)
{
#ifdef WINDOWS
    int16_t *to[COMPONENTS_MAX];
    const int16_t *row[COMPONENTS_MAX];
    for (int c = 0; c < g->count; c++) {
        to[c] = s->strip.row[g->first + c][0];
        row[c] = g->sums + c * SUMS;
    }
    if (g->windowed && g->count == 1)
        windows_make(to, row, 1, &g->windows, s->strip.n);
    else if (g->windowed && g->count == 2)
        windows_make(to, row, 2, &g->windows, s->strip.n);
    else if (g->windowed)
        windows_make(to, row, 3, &g->windows, s->strip.n);
    if (g->windowed)
        return;
#endif
    if (g->x->stride > 8)
        group_rows(s, g, g->x->stride, g->most);
    else
        group_rows(s, g, 8, 8);
}

// Makes the strip's levels of output row y, which shows some of the picture.
static inline void filtered_strip_levels(struct filtered_strip *s, int y)
{
    struct lines lines[3];
    for (int i = 0; i < s->passes; i++)
        pass_make(&s->pass[i], s->strip.src, y);
    for (int i = s->first; i < s->groups; i++)
        group_make(s, &s->group[i]);
    for (int c = 0; c < 3; c++) {
        const int16_t *row = s->strip.row[picture_of(s->strip.warp) == PICTURE_LUMA ? 0 : c][0];
        lines[c] = (struct lines){row, row, 0};
    }
    strip_finish(&s->strip, lines, s->strip.warp->filtered.coverage_y[y]);
}

// --- a band

// Output pixels of a band that show some of the picture.
struct visible_rect {
    int x0, y0, x1, y1;
};

static inline int row_coverage(const struct warp *warp, int y)
{
    const struct filter_tables *f = &warp->filtered;
    return warp->rows ? warp->rows[y].coverage : f->turned ? f->coverage_x[y] : f->coverage_y[y];
}

static inline const uint16_t *coverage_of_columns(const struct warp *warp)
{
    const struct filter_tables *f = &warp->filtered;
    return warp->rows ? warp->coverage_columns : f->turned ? f->coverage_y : f->coverage_x;
}

static inline struct visible_rect visible_rect_of(const struct warp *warp, struct band band)
{
    const uint16_t *columns = coverage_of_columns(warp);
    struct visible_rect s = {0, band.y0, warp->width, band.y1};
    while (s.y0 < s.y1 && row_coverage(warp, s.y0) == 0)
        s.y0++;
    while (s.y1 > s.y0 && row_coverage(warp, s.y1 - 1) == 0)
        s.y1--;
    while (s.x0 < s.x1 && columns[s.x0] == 0)
        s.x0++;
    while (s.x1 > s.x0 && columns[s.x1 - 1] == 0)
        s.x1--;
    return s;
}

// Fills the rest of the band around it.
static inline void surround_fill(const struct elements *elements,
                                 const struct visible_rect *visible, struct band band)
{
    const int width = elements->warp->width;
    elements_fill(elements, 0, width, band.y0, visible->y0);
    elements_fill(elements, 0, width, visible->y1, band.y1);
    elements_fill(elements, 0, visible->x0, visible->y0, visible->y1);
    elements_fill(elements, visible->x1, width, visible->y0, visible->y1);
}

static inline void axes_warp(const struct image *dst, const struct image *src,
                             const struct warp *warp, struct band band, bool filled)
{
    struct elements elements;
    struct strip strip;
    elements_init(&elements, dst, warp);
    const struct visible_rect visible = visible_rect_of(warp, band);
    if (!filled)
        surround_fill(&elements, &visible, band);
    for (int x = visible.x0; x < visible.x1; x += STRIP) {
        strip_init(&strip, src, warp, x, visible.x1 - x < STRIP ? visible.x1 - x : STRIP);
        for (int y = visible.y0; y < visible.y1; y++) {
            strip_levels(&strip, &warp->rows[y]);
            elements_store(&elements, x, y, &strip.levels, 0, strip.n);
        }
    }
}

static inline void filtered_warp(const struct image *dst, const struct image *src,
                                 const struct warp *warp, struct band band, bool filled)
{
    struct elements elements;
    struct filtered_strip strip;
    elements_init(&elements, dst, warp);
    const struct visible_rect visible = visible_rect_of(warp, band);
    if (!filled)
        surround_fill(&elements, &visible, band);
    for (int x = visible.x0; x < visible.x1; x += STRIP) {
        filtered_strip_init(&strip, src, warp, x, visible.x1 - x < STRIP ? visible.x1 - x : STRIP);
        for (int y = visible.y0; y < visible.y1; y++) {
            filtered_strip_levels(&strip, y);
            elements_store(&elements, x, y, &strip.strip.levels, 0, strip.strip.n);
        }
    }
}

enum { TURNED_ROWS = 128, TURNED_COLUMNS = 64 }; // of the result, made together

// For exchanged axes: a row of the strip becomes a column of the result.
static inline void filtered_turned_warp(const struct image *dst, const struct image *src,
                                        const struct warp *warp, struct band band, bool filled)
{
    struct elements elements;
    struct filtered_strip strip;
    struct levels row;
    uint8_t level[3][TURNED_ROWS][TURNED_COLUMNS];
    elements_init(&elements, dst, warp);
    const struct visible_rect visible = visible_rect_of(warp, band);
    if (!filled)
        surround_fill(&elements, &visible, band);
    for (int y = visible.y0; visible.x0 < visible.x1 && y < visible.y1; y += TURNED_ROWS) {
        const int rows = visible.y1 - y < TURNED_ROWS ? visible.y1 - y : TURNED_ROWS;
        filtered_strip_init(&strip, src, warp, y, rows);
        for (int x = visible.x0; x < visible.x1; x += TURNED_COLUMNS) {
            const int n = visible.x1 - x < TURNED_COLUMNS ? visible.x1 - x : TURNED_COLUMNS;
            for (int i = 0; i < n; i++) {
                filtered_strip_levels(&strip, x + i);
                for (int c = 0; c < warp->channels; c++)
                    for (int k = 0; k < rows; k++)
                        level[c][k][i] = strip.strip.levels.row[c][k];
            }
            for (int k = 0; k < rows; k++) {
                for (int c = 0; c < warp->channels; c++)
                    memcpy(row.row[c], level[c][k], n);
                elements_store(&elements, x, y + k, &row, 0, n);
            }
        }
    }
}

static inline void lanes_warp(const struct image *dst, const struct image *src,
                              const struct warp *warp, struct band band, bool filled)
{
    if (warp->rows)
        axes_warp(dst, src, warp, band, filled);
    else if (filter_weighs(warp->filter) && !warp->filtered.turned)
        filtered_warp(dst, src, warp, band, filled);
    else if (filter_weighs(warp->filter))
        filtered_turned_warp(dst, src, warp, band, filled);
    else if (turn_reaches(src))
        turn_warp(dst, src, warp, band, filled);
    else
        warp_reference(dst, src, warp, band, filled);
}

#endif
