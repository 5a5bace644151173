// Samples of YUV sources at every pixel: runs of a row in 16-bit lanes. A template, see
// fixed_lanes.h.
#ifndef FRAMED_KERNELS_CPU_YUV_UPSAMPLE_H
#define FRAMED_KERNELS_CPU_YUV_UPSAMPLE_H

#include "kernels/cpu/fixed_lanes.h"
#include "kernels/ops.h"

enum { UPSAMPLE_RUN = 512 }; // pixels: even, and whole blocks
_Static_assert((int)UPSAMPLE_RUN % (int)PIXELS == 0, "no block leaves a run's buffers");

// Input for all pixels of a source.
struct upsampling {
    const struct image *src;
    const struct yuv *yuv;
};

static inline FRAMED_HD void read_samples_of(int16_t *to, enum pixel_format source,
                                             const uint8_t *row, int step, int first, int n,
                                             int last)
{
    int i = 0;
    for (; first + i < 0; i++)
        to[i] = (int16_t)sample_load(source, row);
    const int end = first + n > last + 1 ? last + 1 - first : n;
    for (; i < end; i++)
        to[i] = (int16_t)sample_load(source, row + (first + i) * step);
    for (; i < n; i++)
        to[i] = (int16_t)sample_load(source, row + last * step);
}

// Reads samples first to first + n of component c in a row; outside the row, the nearest one. The
// loop differs by layout of samples; all sources have six layouts.
static inline void read_samples(int16_t *to, enum pixel_format source, int c, const uint8_t *row,
                                int first, int n, int last)
{
    const int step = component_of(source, c).step;
    if (source == PIXEL_P010 && step == 2)
        read_samples_of(to, PIXEL_P010, row, 2, first, n, last);
    else if (source == PIXEL_P010)
        read_samples_of(to, PIXEL_P010, row, 4, first, n, last);
    else if (source == PIXEL_YUV420P10)
        read_samples_of(to, PIXEL_YUV420P10, row, 2, first, n, last);
    else if (step == 1)
        read_samples_of(to, PIXEL_NV12, row, 1, first, n, last);
    else if (step == 2)
        read_samples_of(to, PIXEL_NV12, row, 2, first, n, last);
    else
        read_samples_of(to, PIXEL_NV12, row, 4, first, n, last);
}

// Samples between s[0] and s[1], to 7 fraction bits centred on 128. Weights of chroma at pixels are
// quarters, so no sum requires rounding; minus 16384 it fits 16 bits.
static inline FRAMED_HD vec_s16 between(const int16_t *s, int w, int shift)
{
    return load_s16(s) * all_s16((WEIGHT_ONE - w) >> shift) +
           load_s16(s + 1) * all_s16(w >> shift) - 16384;
}

// Component 1 or 2 at n pixels from an even x on: 7 fraction bits centred on 128. Writes `out` up
// to a whole block.
static inline void upsample(int16_t out[UPSAMPLE_RUN], const struct upsampling *up, int c, int x,
                            int y, int n)
{
    const struct yuv *yuv = up->yuv;
    const int whole = (n + PIXELS - 1) / PIXELS * PIXELS;
    if (!source_has_chroma(yuv->source)) {
        memset(out, 0, whole * sizeof *out);
        return;
    }
    const struct component k = component_of(yuv->source, c);
    const struct taps rows = chroma_taps(yuv->chroma_y, y * 65536, 0, yuv->height);
    const vec_s16 weight = all_s16(2 * rows.w);
    const int shift = source_is_10bit(yuv->source) ? 9 : 7;
    const bool halved = position_sub(yuv->chroma_x) > 0;
    const int last = (yuv->width - 1) >> halved;
    const int first = halved ? x / 2 - 1 : x, read = halved ? whole / 2 + 2 : whole + 1;
    int16_t s[2][UPSAMPLE_RUN + 2];
    const int16_t *top = s[0], *bottom = rows.w ? s[1] : top;
    read_samples(s[0], yuv->source, c, component_row(up->src, k, rows.t0), first, read, last);
    if (rows.w)
        read_samples(s[1], yuv->source, c, component_row(up->src, k, rows.t1), first, read, last);
    if (!halved) {
        for (int i = 0; i < whole; i += LANES)
            store_s16(out + i, vertical_lanes(between(top + i, 0, shift),
                                              between(bottom + i, 0, shift), weight));
        return;
    }
    vec_s16 half[2];
    for (int i = 0; i < whole / 2; i += LANES) {
        for (int odd = 0; odd < 2; odd++) {
            const int32_t p = position_of(yuv->chroma_x, odd * 65536);
            const int at = i + 1 + (p >> WEIGHT_BITS), w = p & WEIGHT_MASK;
            half[odd] =
                vertical_lanes(between(top + at, w, shift), between(bottom + at, w, shift), weight);
        }
        store_zipped(out + 2 * i, half[0], half[1]);
    }
}

// --- through RGB

struct rgb_planes {
    uint8_t channel[3][UPSAMPLE_RUN];
};

static inline void rgb_run(struct rgb_planes *rgb, const struct upsampling *up, int x, int y, int n)
{
    int16_t luma[UPSAMPLE_RUN], u[UPSAMPLE_RUN], v[UPSAMPLE_RUN];
    const int whole = (n + PIXELS - 1) / PIXELS * PIXELS;
    const struct component k = component_of(up->yuv->source, 0);
    read_samples(luma, up->yuv->source, 0, component_row(up->src, k, y), x, whole,
                 up->yuv->width - 1);
    upsample(u, up, 1, x, y, n);
    upsample(v, up, 2, x, y, n);
    const struct rgb_registers colours = rgb_registers_of(&up->yuv->rgb);
    const vec_s16 unit = all_s16(source_is_10bit(up->yuv->source) ? 32 : 128);
    for (int i = 0; i < whole; i += PIXELS) {
        struct rgb6_lanes q[2];
        for (int half = 0; half < 2; half++) {
            const int at = i + half * LANES;
            q[half] = yuv_to_rgb6_lanes(&colours, load_s16(luma + at) * unit - 16384,
                                        load_s16(u + at), load_s16(v + at));
        }
        store_u8(rgb->channel[0] + i, pack_level6(q[0].r, q[1].r));
        store_u8(rgb->channel[1] + i, pack_level6(q[0].g, q[1].g));
        store_u8(rgb->channel[2] + i, pack_level6(q[0].b, q[1].b));
    }
}

// --- samples that keep their values

// Component 1 or 2 of n blocks of 2x2 pixels from (x, y) on, each of `columns` by `rows` samples.
static inline FRAMED_HD void block_means(uint8_t *to, const struct upsampling *up, int c, int x,
                                         int y, int n, int columns, int rows)
{
    const struct component k = component_of(up->yuv->source, c);
    const int sub_x = columns == 1, sub_y = rows == 1;
    const int last_x = (up->yuv->width - 1) >> sub_x, last_y = (up->yuv->height - 1) >> sub_y;
    const int shift = (source_is_10bit(up->yuv->source) ? 4 : 2) - sub_x - sub_y;
    int16_t s[2][UPSAMPLE_RUN] = {0};
    for (int row = 0; row < rows; row++) {
        const int at = (y >> sub_y) + row < last_y ? (y >> sub_y) + row : last_y;
        read_samples(s[row], up->yuv->source, c, component_row(up->src, k, at), x >> sub_x,
                     n * columns, last_x);
    }
    for (int i = 0; i < n; i++) {
        int sum = s[0][columns * i] + s[1][columns * i];
        if (columns == 2)
            sum += s[0][columns * i + 1] + s[1][columns * i + 1];
        to[i] = (uint8_t)kept_of(sum, shift);
    }
}

// kept_mean of component c in n blocks from (x, y) on.
static inline void kept_means_run(uint8_t *to, const struct upsampling *up, int c, int x, int y,
                                  int n)
{
    const int columns = 2 >> position_sub(up->yuv->chroma_x);
    const int rows = 2 >> position_sub(up->yuv->chroma_y);
    if (!source_has_chroma(up->yuv->source))
        memset(to, 128, n);
    else if (columns == 2 && rows == 2)
        block_means(to, up, c, x, y, n, 2, 2);
    else if (rows == 2)
        block_means(to, up, c, x, y, n, 1, 2);
    else
        block_means(to, up, c, x, y, n, columns, 1);
}

// kept_interpolated of component c.
static inline void chroma_run(uint8_t to[UPSAMPLE_RUN], const struct upsampling *up, int c, int x,
                              int y, int n)
{
    int16_t out[UPSAMPLE_RUN];
    upsample(out, up, c, x, y, n);
    for (int i = 0; i < n; i += PIXELS)
        store_u8(to + i, pack_u8(kept_interpolated_lanes(load_s16(out + i)),
                                 kept_interpolated_lanes(load_s16(out + i + LANES))));
}

#endif
