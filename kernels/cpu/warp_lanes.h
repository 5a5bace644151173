// warp in wide registers: a template, see fixed_lanes.h. A band is made in strips of columns, each
// row by row, so that a strip's source rows stay in the cache.
#ifndef FRAMED_KERNELS_CPU_WARP_LANES_H
#define FRAMED_KERNELS_CPU_WARP_LANES_H

#include "kernels/cpu/warp_filtered.h"
#include "kernels/cpu/warp_turned.h"
#include "kernels/warp.h"

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
