// Which samples of a source a result reads, for C and CUDA alike; the arithmetic is fixed.h's.
// `format` stands beside the image as an argument of its own so that a caller who passes a constant
// gets code without a switch: see FOR_EACH_SOURCE.
#ifndef FRAMED_KERNELS_SAMPLE_H
#define FRAMED_KERNELS_SAMPLE_H

#include "kernels/fixed.h"
#include "kernels/ops.h"

// Row y of the plane that holds k, at the component's first sample.
static inline FRAMED_HD uint8_t *component_row(const struct image *image, struct component k, int y)
{
    const struct plane *plane = &image->plane[k.plane];
    return plane->data + (ptrdiff_t)y * plane->stride + k.offset;
}

// 16-bit samples lie at even addresses. Bits outside the 10 do not count, whatever a stream puts
// there.
static inline FRAMED_HD int sample_load(enum pixel_format format, const uint8_t *at)
{
    if (source_is_10bit(format))
        return *(const uint16_t *)at >> pixel_layout_of(format).shift & 1023;
    return *at;
}

// Two neighbours along one axis, clamped, and the weight of the second.
struct taps {
    int t0, t1, w;
};

static inline FRAMED_HD struct taps taps_at(int32_t p, int first, int last)
{
    const int t = p >> WEIGHT_BITS;
    struct taps taps;
    taps.t0 = clamp_to(t, first, last);
    taps.t1 = clamp_to(t + 1, first, last);
    taps.w = p & WEIGHT_MASK;
    return taps;
}

static inline FRAMED_HD int sample_row(enum pixel_format format, const uint8_t *row, int step,
                                       struct taps x)
{
    const int p0 = sample_load(format, row + x.t0 * step);
    const int p1 = sample_load(format, row + x.t1 * step);
    return source_is_10bit(format) ? horizontal10(p0, p1, x.w) : horizontal8(p0, p1, x.w);
}

// Component c, bilinear: 7 fraction bits centred on 128.
static inline FRAMED_HD int sample_bilinear(const struct image *src, enum pixel_format format,
                                            int c, struct taps x, struct taps y)
{
    const struct component k = component_of(format, c);
    const int h0 = sample_row(format, component_row(src, k, y.t0), k.step, x);
    const int h1 = sample_row(format, component_row(src, k, y.t1), k.step, x);
    return vertical(h0, h1, y.w);
}

static inline FRAMED_HD struct rgb6 sample_rgb(const struct image *src, enum pixel_format format,
                                               struct taps x, struct taps y)
{
    struct rgb6 q;
    q.r = channel6(sample_bilinear(src, format, 0, x, y));
    q.g = channel6(sample_bilinear(src, format, 1, x, y));
    q.b = channel6(sample_bilinear(src, format, 2, x, y));
    return q;
}

// The chroma taps of a window [lo, hi) of luma positions.
static inline FRAMED_HD struct taps chroma_taps(struct position at, int32_t s, int lo, int hi)
{
    return taps_at(position_of(at, s), lo >> position_sub(at), (hi - 1) >> position_sub(at));
}

// The picture at taps x, y of warp's source, in rgb6: for gray, in r alone.
static inline FRAMED_HD struct rgb6 warp_sample(const struct image *src, const struct warp *warp,
                                                enum pixel_format format, int32_t sx, int32_t sy,
                                                struct taps x, struct taps y)
{
    const bool gray = warp->order == ORDER_GRAY;
    struct rgb6 q;
    if (source_is_rgb(format)) {
        q = sample_rgb(src, format, x, y);
        if (gray)
            q.r = gray6(q, warp->gray);
        return q;
    }
    const int luma = sample_bilinear(src, format, 0, x, y);
    if (gray) {
        q.r = q.g = q.b = luma6(&warp->rgb, luma);
        return q;
    }
    const struct taps cx = chroma_taps(warp->chroma_x, sx, warp->x0, warp->x1);
    const struct taps cy = chroma_taps(warp->chroma_y, sy, warp->y0, warp->y1);
    return yuv_to_rgb6(&warp->rgb, luma, sample_bilinear(src, format, 1, cx, cy),
                       sample_bilinear(src, format, 2, cx, cy));
}

// The levels of one output pixel whose source position is (sx, sy) in 1/65536 pixel, in the
// tensor's channel order; for gray only level[0] means something. `format` is warp->source.
static inline FRAMED_HD void warp_levels(const struct image *src, const struct warp *warp,
                                         enum pixel_format format, int32_t sx, int32_t sy,
                                         uint8_t level[3])
{
    const int32_t px = position_of(warp->luma, sx), py = position_of(warp->luma, sy);
    const int coverage =
        coverage_of(coverage_axis(px, warp->x0, warp->x1), coverage_axis(py, warp->y0, warp->y1));
    if (coverage == 0) {
        for (int i = 0; i < 3; i++)
            level[i] = warp->fill[i];
        return;
    }
    const struct rgb6 q =
        warp_sample(src, warp, format, sx, sy, taps_at(px, warp->x0, warp->x1 - 1),
                    taps_at(py, warp->y0, warp->y1 - 1));
    const bool bgr = warp->order == ORDER_BGR;
    const int q6[3] = {bgr ? q.b : q.r, q.g, bgr ? q.r : q.b};
    for (int i = 0; i < 3; i++)
        level[i] =
            (uint8_t)(coverage == WEIGHT_ONE ? level_of(q6[i])
                                             : level_blended(q6[i], warp->fill[i], coverage));
}

// Component 1 or 2 of a 4:2:0 source where pixel (x, y) is: 7 fraction bits centred on 128.
static inline FRAMED_HD int chroma_at(const struct image *src, const struct yuv *yuv,
                                      enum pixel_format format, int c, int x, int y)
{
    return sample_bilinear(src, format, c, chroma_taps(yuv->chroma_x, x * 65536, 0, yuv->width),
                           chroma_taps(yuv->chroma_y, y * 65536, 0, yuv->height));
}

// R, G and B of source pixel (x, y). `format` is yuv->source.
static inline FRAMED_HD void rgb_at(const struct image *src, const struct yuv *yuv,
                                    enum pixel_format format, int x, int y, uint8_t rgb[3])
{
    if (source_is_rgb(format)) {
        for (int c = 0; c < 3; c++) {
            const struct component k = component_of(format, c);
            rgb[c] = component_row(src, k, y)[x * k.step];
        }
        return;
    }
    const struct component k = component_of(format, 0);
    const struct taps here = {x, x, 0};
    const int luma = sample_row(format, component_row(src, k, y), k.step, here);
    const struct rgb6 q = yuv_to_rgb6(&yuv->rgb, luma, chroma_at(src, yuv, format, 1, x, y),
                                      chroma_at(src, yuv, format, 2, x, y));
    rgb[0] = (uint8_t)level_of(q.r);
    rgb[1] = (uint8_t)level_of(q.g);
    rgb[2] = (uint8_t)level_of(q.b);
}

// Sample (x, y) of component c, counted in that component's own plane, where samples keep their
// values.
static inline FRAMED_HD int kept_at(const struct image *src, enum pixel_format format, int c, int x,
                                    int y)
{
    const struct component k = component_of(format, c);
    const int sample = sample_load(format, component_row(src, k, y) + x * k.step);
    return source_is_10bit(format) ? kept10(sample) : sample;
}

#endif
