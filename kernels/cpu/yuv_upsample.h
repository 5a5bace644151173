// 4:2:0 sources at every pixel, for wide registers: runs of a row in 16-bit lanes. A template over
// yuv_vector.h.
#ifndef FRAMED_KERNELS_CPU_YUV_UPSAMPLE_H
#define FRAMED_KERNELS_CPU_YUV_UPSAMPLE_H

#include "kernels/cpu/yuv_vector.h"
#include "kernels/sample.h"

enum {
    UPSAMPLE_RUN = 512,           // pixels: even, and whole blocks
    CHROMA_RUN = UPSAMPLE_RUN / 2 // samples; in memory one more on either side
};
_Static_assert((int)UPSAMPLE_RUN % (int)LANES == 0, "no block leaves a run's buffers");

// What takes part in every pixel of a source.
struct upsampling {
    const struct image *src;
    const struct yuv *yuv;
    enum pixel_format source;
};

// Samples first to first + n of component c in a row; where it has none, the nearest.
static inline FRAMED_HD void read_samples(int16_t *to, const struct upsampling *up, int c,
                                          const uint8_t *row, int first, int n, int last)
{
    const int step = component_of(up->source, c).step;
    int i = 0;
    for (; first + i < 0; i++)
        to[i] = (int16_t)sample_load(up->source, row);
    const int end = first + n > last + 1 ? last + 1 - first : n;
    for (; i < end; i++)
        to[i] = (int16_t)sample_load(up->source, row + (first + i) * step);
    for (; i < n; i++)
        to[i] = (int16_t)sample_load(up->source, row + last * step);
}

// Samples to 7 fraction bits centred on 128, between s[0] and s[1]. The weights of chroma at pixels
// are quarters, so no sum needs rounding; and it fits 16 bits when 16384 is off.
static inline FRAMED_HD words between(const struct upsampling *up, const int16_t *s, int w)
{
    const int shift = source_is_10bit(up->source) ? 9 : 7;
    const words sum = words_add(words_mul(words_load(s), words_all((WEIGHT_ONE - w) >> shift)),
                                words_mul(words_load(s + 1), words_all(w >> shift)));
    return words_sub(sum, words_all(16384));
}

// Component 1 or 2 at n pixels from an even x on: 7 fraction bits centred on 128. Both buffers are
// written to the end of a block.
static inline FRAMED_HD void upsample(int16_t out[UPSAMPLE_RUN], const struct upsampling *up, int c,
                                      int x, int y, int n)
{
    const struct yuv *yuv = up->yuv;
    const int last = (yuv->width - 1) >> 1;
    const struct taps rows = chroma_taps(yuv->chroma_y, y * 65536, 0, yuv->height);
    const struct component k = component_of(up->source, c);
    const int blocks = (n + LANES - 1) / LANES, read = blocks * (LANES / 2) + 2;
    const words weight = words_all(2 * rows.w);
    int16_t s[2][CHROMA_RUN + 2];
    read_samples(s[0], up, c, component_row(up->src, k, rows.t0), x / 2 - 1, read, last);
    read_samples(s[1], up, c, component_row(up->src, k, rows.t1), x / 2 - 1, read, last);
    words half[2];
    for (int i = 0; i < blocks * (LANES / 2); i += LANES / 2) {
        for (int odd = 0; odd < 2; odd++) {
            const int32_t p = position_of(yuv->chroma_x, odd * 65536);
            const int at = i + 1 + (p >> WEIGHT_BITS), w = p & WEIGHT_MASK;
            const words h0 = between(up, &s[0][at], w), h1 = between(up, &s[1][at], w);
            half[odd] = words_add(h0, words_mulhrs(words_sub(h1, h0), weight));
        }
        words_store_zipped(out + 2 * i, half[0], half[1]);
    }
}

// --- through RGB

struct rgb_planes {
    uint8_t channel[3][UPSAMPLE_RUN];
};

static inline FRAMED_HD void level_block(struct rgb_planes *rgb, int i, const words q[3][2])
{
    for (int c = 0; c < 3; c++)
        store(rgb->channel[c] + i, words_pack(words_sra6(q[c][0]), words_sra6(q[c][1])));
}

// yuv_to_rgb6 of LANES / 2 pixels.
static inline FRAMED_HD void rgb6_of(const struct yuv_to_rgb *c, words y, words u, words v,
                                     words q[3][2], int half)
{
    const words yy = words_adds(words_mulhrs(y, words_all(c->y)), words_all(c->offset));
    q[0][half] = words_adds(yy, words_mulhrs(v, words_all(c->rv)));
    q[1][half] = words_adds(words_adds(yy, words_mulhrs(u, words_all(c->gu))),
                            words_mulhrs(v, words_all(c->gv)));
    q[2][half] = words_adds(words_adds(yy, u), words_mulhrs(u, words_all(c->bu)));
}

static inline FRAMED_HD void rgb_run(struct rgb_planes *rgb, const struct upsampling *up, int x,
                                     int y, int n)
{
    int16_t luma[UPSAMPLE_RUN], u[UPSAMPLE_RUN], v[UPSAMPLE_RUN];
    const int whole = (n + LANES - 1) / LANES * LANES;
    const struct component k = component_of(up->source, 0);
    read_samples(luma, up, 0, component_row(up->src, k, y), x, whole, up->yuv->width - 1);
    upsample(u, up, 1, x, y, n);
    upsample(v, up, 2, x, y, n);
    const words unit = words_all(source_is_10bit(up->source) ? 32 : 128);
    for (int i = 0; i < whole; i += LANES) {
        words q[3][2];
        for (int half = 0; half < 2; half++) {
            const int at = i + half * (LANES / 2);
            const words y7 = words_sub(words_mul(words_load(luma + at), unit), words_all(16384));
            rgb6_of(&up->yuv->rgb, y7, words_load(u + at), words_load(v + at), q, half);
        }
        level_block(rgb, i, (const words(*)[2])q);
    }
}

// --- samples that keep their values

static inline FRAMED_HD words interpolated_levels(const int16_t *at)
{
    return words_add(words_mulhrs(words_load(at), words_all(256)), words_all(128));
}

// kept_interpolated of component c.
static inline FRAMED_HD void chroma_run(uint8_t to[UPSAMPLE_RUN], const struct upsampling *up,
                                        int c, int x, int y, int n)
{
    int16_t out[UPSAMPLE_RUN];
    upsample(out, up, c, x, y, n);
    for (int i = 0; i < n; i += LANES)
        store(to + i,
              words_pack(interpolated_levels(out + i), interpolated_levels(out + i + LANES / 2)));
}

#endif
