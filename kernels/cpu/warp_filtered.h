// Rows of levels of a strip of output columns with a filter that weights all samples under a pixel:
// a template, see fixed_lanes.h. For each output row, the samples of its source rows are summed by
// column, which gives one row as wide as the source; then that row's samples are summed by pixel.
#ifndef FRAMED_KERNELS_CPU_WARP_FILTERED_H
#define FRAMED_KERNELS_CPU_WARP_FILTERED_H

#include "kernels/cpu/warp_rows.h"
#include "kernels/cpu/warp_sums.h"

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

#endif
