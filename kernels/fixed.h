// Integer arithmetic shared by C, SIMD and CUDA: every version of a kernel gives the bytes of these
// functions. Results of a step fit 16-bit lanes; products and sums are wider. `>>` of a negative
// number is arithmetic, which gcc, clang and nvcc guarantee.
#ifndef FRAMED_KERNELS_FIXED_H
#define FRAMED_KERNELS_FIXED_H

#include "kernels/image.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WEIGHT_BITS = 14,
    WEIGHT_ONE = 1 << WEIGHT_BITS, // of a tap, and of coverage
    WEIGHT_MASK = WEIGHT_ONE - 1,
    LEVEL6_MAX = 255 * 64, // white with 6 fraction bits
    LEVEL6_HALF = 32,      // the rounding term of >> 6
};

// Converts a sampling position from 1/65536 source pixel to 1/16384 sample of a plane: (s + add) >>
// shift. shift is 2 for one sample per pixel, 3 for one per two pixels.
struct position {
    int32_t add, shift;
};

// YUV to RGB: coefficients in Q15; the result has 6 fraction bits and includes the rounding term of
// the final shift.
struct yuv_to_rgb {
    int16_t y, rv, gu, gv, bu; // y: cY/2; rv: cRV/2; gu, gv: cGU/2, cGV/2; bu: cBU/2 - 1
    int16_t offset;
};

// RGB to YUV: (c0*R + c1*G + c2*B + round) >> shift for Y, U and V, then clamped to 0..255.
struct rgb_to_yuv {
    int32_t row[3][3];
    int32_t round[3];
    int32_t shift;
};

static inline FRAMED_HD int clamp_to(int x, int lo, int hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

static inline FRAMED_HD int mulhrs(int a, int b)
{
    return (a * b + (1 << 14)) >> 15;
}

static inline FRAMED_HD int adds16(int a, int b)
{
    return clamp_to(a + b, INT16_MIN, INT16_MAX);
}

// Converts 1/65536 source pixel to 1/16384 sample of a plane: the tap is the result >> WEIGHT_BITS,
// the weight of the next tap is the result & WEIGHT_MASK.
static inline FRAMED_HD int32_t position_of(struct position at, int32_t s)
{
    return (s + at.add) >> at.shift;
}

// Centre of the pixel nearest to source position s; of two, the later one.
static inline FRAMED_HD int32_t position_snapped(int32_t s)
{
    return (s + 32768) & ~65535;
}

// log2 of the pixels per sample along the axis.
static inline FRAMED_HD int position_sub(struct position at)
{
    return at.shift - 2;
}

// Share of the footprint at `p` that lies in [lo, hi), 0 to WEIGHT_ONE, along one axis.
static inline FRAMED_HD int coverage_axis(int32_t p, int lo, int hi)
{
    const int tap = p >> WEIGHT_BITS, w = p & WEIGHT_MASK;
    return (tap >= lo && tap < hi ? WEIGHT_ONE - w : 0) + (tap + 1 >= lo && tap + 1 < hi ? w : 0);
}

static inline FRAMED_HD int coverage_of(int cx, int cy)
{
    return (cx * cy + WEIGHT_ONE / 2) >> WEIGHT_BITS;
}

// Samples to 7 fraction bits centred on 128; 10-bit samples at a quarter of their value.
static inline FRAMED_HD int horizontal8(int p0, int p1, int w)
{
    return ((p0 * (WEIGHT_ONE - w) + p1 * w + 64) >> 7) - 16384;
}

static inline FRAMED_HD int horizontal10(int p0, int p1, int w)
{
    return ((p0 * (WEIGHT_ONE - w) + p1 * w + 256) >> 9) - 16384;
}

static inline FRAMED_HD int vertical(int h0, int h1, int w)
{
    return h0 + mulhrs(h1 - h0, 2 * w);
}

// Sums of a weighting filter: a column's, with weights that sum to 1 << bits, to 7 fraction bits
// centred on 128; then the sum of these over a row.
static inline FRAMED_HD int filtered_column8(int sum, int bits)
{
    return ((sum + (1 << (bits - 8))) >> (bits - 7)) - 16384;
}

static inline FRAMED_HD int filtered_column10(int sum, int bits)
{
    return ((sum + (1 << (bits - 6))) >> (bits - 5)) - 16384;
}

static inline FRAMED_HD int filtered_row(int sum)
{
    return (sum + WEIGHT_ONE / 2) >> WEIGHT_BITS;
}

// Levels with 6 fraction bits, including LEVEL6_HALF, so that level_of only shifts.
struct rgb6 {
    int r, g, b;
};

static inline FRAMED_HD int luma6(const struct yuv_to_rgb *c, int y)
{
    return adds16(mulhrs(y, c->y), c->offset);
}

// y, u, v: 7 fraction bits centred on 128. The order of the saturating sums is part of the
// contract.
static inline FRAMED_HD struct rgb6 yuv_to_rgb6(const struct yuv_to_rgb *c, int y, int u, int v)
{
    const int yy = luma6(c, y);
    struct rgb6 q;
    q.r = adds16(yy, mulhrs(v, c->rv));
    q.g = adds16(adds16(yy, mulhrs(u, c->gu)), mulhrs(v, c->gv));
    q.b = adds16(adds16(yy, u), mulhrs(u, c->bu));
    return q;
}

// One channel of an RGB source from 7 fraction bits centred on 128.
static inline FRAMED_HD int channel6(int v)
{
    return ((v + 1) >> 1) + 128 * 64 + LEVEL6_HALF;
}

// Luma of an RGB source; `weight`: Q15, of R, G and B.
static inline FRAMED_HD int gray6(struct rgb6 q, const int16_t weight[3])
{
    return mulhrs(q.r - LEVEL6_HALF, weight[0]) + mulhrs(q.g - LEVEL6_HALF, weight[1]) +
           mulhrs(q.b - LEVEL6_HALF, weight[2]) + LEVEL6_HALF;
}

static inline FRAMED_HD int level_of(int q6)
{
    return clamp_to(q6 >> 6, 0, 255);
}

// Blends picture, at `coverage` of WEIGHT_ONE, with `fill`; rounds once.
static inline FRAMED_HD int level_blended(int q6, int fill, int coverage)
{
    const int x = clamp_to(q6 - LEVEL6_HALF, 0, LEVEL6_MAX);
    return (x * coverage + fill * 64 * (WEIGHT_ONE - coverage) + (1 << 19)) >> 20;
}

// Y, U or V (i = 0, 1, 2) from levels of R, G and B.
static inline FRAMED_HD int yuv_level(const struct rgb_to_yuv *c, int i, int r, int g, int b)
{
    const int sum = c->row[i][0] * r + c->row[i][1] * g + c->row[i][2] * b + c->round[i];
    return clamp_to(sum >> c->shift, 0, 255);
}

// The mean of 1 << shift numbers from their sum.
static inline FRAMED_HD int mean_of(int sum, int shift)
{
    return (sum + (1 << shift >> 1)) >> shift;
}

// One channel of a 2x2 block from the sum of its four pixels.
static inline FRAMED_HD int block_mean(int sum)
{
    return mean_of(sum, 2);
}

// 8-bit value of samples that keep their values, from their sum, which has `shift` extra bits.
static inline FRAMED_HD int kept_of(int sum, int shift)
{
    return clamp_to(mean_of(sum, shift), 0, 255);
}

// The same from an interpolated value with 7 fraction bits centred on 128.
static inline FRAMED_HD int kept_interpolated(int v)
{
    return clamp_to(((v + 64) >> 7) + 128, 0, 255);
}

// --- samples of a source. `format` is passed in addition to the image: a constant compiles to code
// without a switch (FOR_EACH_SOURCE).

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

// Luma of pixel (x, y): of YUV the sample itself, of 10 bits the upper 8; of RGB the sum with
// `gray`, Q15 weights of R, G and B (colour_gray_weights), rounded once.
static inline FRAMED_HD int luma_at(const struct image *src, enum pixel_format format,
                                    const int16_t gray[3], int x, int y)
{
    int sample[3] = {0};
    FRAMED_ROLLED
    for (int c = 0; c < (source_is_rgb(format) ? 3 : 1); c++) {
        const struct component k = component_of(format, c);
        sample[c] = sample_load(format, component_row(src, k, y) + (ptrdiff_t)x * k.step);
    }
    if (source_is_rgb(format))
        return (gray[0] * sample[0] + gray[1] * sample[1] + gray[2] * sample[2] + (1 << 14)) >> 15;
    return source_is_10bit(format) ? sample[0] >> 2 : sample[0];
}

// --- coefficients. All colours are resolved.

// Each member of `over`, or of `under` if it is unspecified.
struct colour colour_override(struct colour over, struct colour under);

// True if both have the same matrix and range; siting is ignored.
bool colour_same_samples(struct colour, struct colour);

struct yuv_to_rgb colour_to_rgb(struct colour, int bits); // bits of a source sample
struct rgb_to_yuv colour_to_yuv(struct colour);
void colour_gray_weights(enum matrix, int16_t weight[3]);

// Sampling positions of luma and RGB, and of a format's chroma, which equals luma's along an axis
// without subsampling.
struct position luma_position(void);
struct position chroma_position_x(enum pixel_format, enum siting);
struct position chroma_position_y(enum pixel_format, enum siting);

#ifdef __cplusplus
}
#endif
#endif
