// Counts the bytes a warp must read.
#include "tests/bench/measure.h"

#include <stdlib.h>

#include "kernels/fixed.h"

// The pieces of a plane read so far: one byte each.
struct pieces {
    uint8_t *seen;
    size_t piece, count;
};

static void see(struct pieces *pieces, size_t offset)
{
    uint8_t *seen = &pieces->seen[offset / pieces->piece];
    pieces->count += !*seen;
    *seen = 1;
}

static void see_taps(struct pieces *pieces, ptrdiff_t stride, const struct component *k,
                     struct taps x, struct taps y, bool every_tap)
{
    const bool right = every_tap || x.w, below = every_tap || y.w;
    const size_t row = (size_t)(y.t0 * stride), next = (size_t)(y.t1 * stride);
    const size_t left = (size_t)(x.t0 * k->step + k->offset);
    const size_t beside = (size_t)(x.t1 * k->step + k->offset);
    see(pieces, row + left);
    if (right)
        see(pieces, row + beside);
    if (below)
        see(pieces, next + left);
    if (right && below)
        see(pieces, next + beside);
}

static bool chroma(const struct warp *warp, int c)
{
    return c > 0 && !source_is_rgb(warp->source);
}

static void see_component(struct pieces *pieces, const struct warp *warp, const struct image *src,
                          int c, bool every_tap)
{
    const struct component k = component_of(warp->source, c);
    for (int i = 0; i < warp->width * warp->height; i++) {
        const int dx = i % warp->width, dy = i / warp->width;
        const int32_t sx = warp->colx[dx] + warp->rowx[dy], sy = warp->coly[dx] + warp->rowy[dy];
        const int32_t px = position_of(warp->luma, sx), py = position_of(warp->luma, sy);
        if (coverage_of(coverage_axis(px, warp->x0, warp->x1),
                        coverage_axis(py, warp->y0, warp->y1)) == 0)
            continue;
        struct taps x = taps_at(px, warp->x0, warp->x1 - 1);
        struct taps y = taps_at(py, warp->y0, warp->y1 - 1);
        if (chroma(warp, c)) {
            x = chroma_taps(warp->chroma_x, sx, warp->x0, warp->x1);
            y = chroma_taps(warp->chroma_y, sy, warp->y0, warp->y1);
        }
        see_taps(pieces, src->plane[k.plane].stride, &k, x, y, every_tap);
    }
}

size_t warp_reads(const struct warp *warp, const struct image *src, size_t piece, bool every_tap)
{
    const int components = warp->order == ORDER_GRAY && !source_is_rgb(warp->source) ? 1 : 3;
    size_t bytes = 0;
    for (int p = 0; p < pixel_format_planes(src->format); p++) {
        const size_t all =
            (size_t)src->plane[p].stride * plane_rows(src->format, p, src->height) + piece;
        struct pieces pieces = {.seen = calloc(all / piece + 1, 1), .piece = piece};
        if (!pieces.seen)
            return 0;
        for (int c = 0; c < components; c++)
            if (component_of(warp->source, c).plane == p)
                see_component(&pieces, warp, src, c, every_tap);
        bytes += pieces.count * piece;
        free(pieces.seen);
    }
    return bytes;
}
