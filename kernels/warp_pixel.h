// One pixel of `warp`, from its position to its levels, for C and CUDA alike. With fixed.h and
// sample.h this is the specification: faster versions give the same bytes.
#ifndef FRAMED_KERNELS_WARP_PIXEL_H
#define FRAMED_KERNELS_WARP_PIXEL_H

#include "kernels/ops.h"
#include "kernels/sample.h"

// The levels of the output pixel whose source position is (sx, sy) in 1/65536 pixel, in the
// tensor's channel order; for gray only level[0] means something. `format` is warp->source.
static inline FRAMED_HD void warp_levels(const struct image *src, const struct warp *warp,
                                         enum pixel_format format, int32_t sx, int32_t sy,
                                         uint8_t level[3])
{
    // How much of the 2x2 footprint lies in the window, per axis.
    const int32_t px = position_of(warp->luma, sx), py = position_of(warp->luma, sy);
    const int coverage =
        coverage_of(coverage_axis(px, warp->x0, warp->x1), coverage_axis(py, warp->y0, warp->y1));
    if (coverage == 0) {
        for (int i = 0; i < 3; i++)
            level[i] = warp->fill[i];
        return;
    }

    // The picture there: samples that would lie outside the window are those at its edge.
    const struct taps x = taps_at(px, warp->x0, warp->x1 - 1);
    const struct taps y = taps_at(py, warp->y0, warp->y1 - 1);
    const bool gray = warp->order == ORDER_GRAY;
    struct rgb6 q;
    if (source_is_rgb(format)) {
        q.r = channel6(sample_bilinear(src, format, 0, x, y));
        q.g = channel6(sample_bilinear(src, format, 1, x, y));
        q.b = channel6(sample_bilinear(src, format, 2, x, y));
        if (gray)
            q.r = gray6(q, warp->gray);
    } else if (gray || !source_has_chroma(format)) {
        q.r = q.g = q.b = luma6(&warp->rgb, sample_bilinear(src, format, 0, x, y));
    } else {
        const struct taps cx = chroma_taps(warp->chroma_x, sx, warp->x0, warp->x1);
        const struct taps cy = chroma_taps(warp->chroma_y, sy, warp->y0, warp->y1);
        q = yuv_to_rgb6(&warp->rgb, sample_bilinear(src, format, 0, x, y),
                        sample_bilinear(src, format, 1, cx, cy),
                        sample_bilinear(src, format, 2, cx, cy));
    }

    // What the window does not cover is fill.
    const bool bgr = warp->order == ORDER_BGR;
    const int q6[3] = {bgr ? q.b : q.r, q.g, bgr ? q.r : q.b};
    for (int i = 0; i < 3; i++)
        level[i] =
            (uint8_t)(coverage == WEIGHT_ONE ? level_of(q6[i])
                                             : level_blended(q6[i], warp->fill[i], coverage));
}

#endif
