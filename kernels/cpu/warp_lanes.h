// warp by wide registers: a template, see fixed_lanes.h. A band is made in strips of columns, each
// row by row, so that what a strip keeps of source rows stays near.
#ifndef FRAMED_KERNELS_CPU_WARP_LANES_H
#define FRAMED_KERNELS_CPU_WARP_LANES_H

#include "kernels/cpu/warp_turned.h"

// The tables of positions start with 0 and are monotone where they add to the other axis.
static inline bool axes_mix(const struct warp *warp)
{
    return warp->rowx[warp->height - 1] != 0 || warp->coly[warp->width - 1] != 0;
}

static inline int row_coverage(const struct warp *warp, int y)
{
    return coverage_axis(position_of(warp->luma, warp->rowy[y]), warp->y0, warp->y1);
}

// The output pixels that see some of the picture.
struct sight {
    int x0, y0, x1, y1;
};

static inline struct sight sight_of(const struct warp *warp, struct band band)
{
    struct sight s = {0, band.y0, warp->width, band.y1};
    while (s.y0 < s.y1 && row_coverage(warp, s.y0) == 0)
        s.y0++;
    while (s.y1 > s.y0 && row_coverage(warp, s.y1 - 1) == 0)
        s.y1--;
    while (s.x0 < s.x1 && column_coverage(warp, warp->colx[s.x0]) == 0)
        s.x0++;
    while (s.x1 > s.x0 && column_coverage(warp, warp->colx[s.x1 - 1]) == 0)
        s.x1--;
    return s;
}

// What of the band lies around the sight.
static inline void surround_fill(const struct elements *elements, const struct sight *sight,
                                 struct band band)
{
    const int width = elements->warp->width;
    elements_fill(elements, 0, width, band.y0, sight->y0);
    elements_fill(elements, 0, width, sight->y1, band.y1);
    elements_fill(elements, 0, sight->x0, sight->y0, sight->y1);
    elements_fill(elements, sight->x1, width, sight->y0, sight->y1);
}

static inline void axes_warp(const struct image *dst, const struct image *src,
                             const struct warp *warp, struct band band, bool filled)
{
    struct elements elements;
    struct strip strip;
    elements_init(&elements, dst, warp);
    const struct sight sight = sight_of(warp, band);
    if (!filled)
        surround_fill(&elements, &sight, band);
    for (int x = sight.x0; x < sight.x1; x += STRIP) {
        strip_init(&strip, src, warp, x, sight.x1 - x < STRIP ? sight.x1 - x : STRIP);
        for (int y = sight.y0; y < sight.y1; y++) {
            strip_levels(&strip, y, row_coverage(warp, y));
            elements_store(&elements, x, y, &strip.levels, 0, strip.n);
        }
    }
}

static inline void lanes_warp(const struct image *dst, const struct image *src, const struct op *op,
                              struct band band, bool filled)
{
    const struct warp *warp = &op->warp;
    if (!axes_mix(warp))
        axes_warp(dst, src, warp, band, filled);
    else if (turn_reaches(src))
        turn_warp(dst, src, warp, band, filled);
    else
        op_reference(dst, src, op, band, filled);
}

#endif
