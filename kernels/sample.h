// Reads and interpolates a source's samples, for C and CUDA, with the arithmetic of fixed.h.
// `format` is passed in addition to the image: a constant compiles to code without a switch
// (FOR_EACH_SOURCE).
#ifndef FRAMED_KERNELS_SAMPLE_H
#define FRAMED_KERNELS_SAMPLE_H

#include "kernels/fixed.h"

// Row y of the plane that holds k, at the component's first sample.
static inline FRAMED_HD uint8_t *component_row(const struct image *image, struct component k, int y)
{
    const struct plane *plane = &image->plane[k.plane];
    return plane->data + (ptrdiff_t)y * plane->stride + k.offset;
}

// 16-bit samples are at even addresses. Bits outside the 10 are ignored.
static inline FRAMED_HD int sample_load(enum pixel_format format, const uint8_t *at)
{
    if (source_is_10bit(format))
        return *(const uint16_t *)at >> pixel_layout_of(format).shift & 1023;
    return *at;
}

// Two clamped neighbours along one axis, and the weight of the second.
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

// Chroma taps of a window [lo, hi) of luma positions.
static inline FRAMED_HD struct taps chroma_taps(struct position at, int32_t s, int lo, int hi)
{
    return taps_at(position_of(at, s), lo >> position_sub(at), (hi - 1) >> position_sub(at));
}

#endif
