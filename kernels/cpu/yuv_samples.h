// Samples of YUV sources in wide registers. A template, see fixed_lanes.h.
#ifndef FRAMED_KERNELS_CPU_YUV_SAMPLES_H
#define FRAMED_KERNELS_CPU_YUV_SAMPLES_H

#include "kernels/cpu/fixed_lanes.h"
#include "kernels/ops.h"

// --- at every pixel: runs of a row in 16-bit lanes

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

// --- 4:2:0 samples that keep their values in another 4:2:0 layout

enum { KEPT_RUN = 256 }; // samples

static inline FRAMED_HD int kept_bytes(enum pixel_format source)
{
    return source_is_10bit(source) ? 2 : 1;
}

static inline FRAMED_HD vec_u8 load_kept(enum pixel_format source, const uint8_t *from)
{
    if (!source_is_10bit(source))
        return load_u8(from);
    return pack_quarters(samples_10bit(source, load_s16(from)),
                         samples_10bit(source, load_s16(from + VECTOR_BYTES)));
}

static inline FRAMED_HD int kept_sample(enum pixel_format source, const uint8_t *from)
{
    return kept_of(sample_load(source, from), source_is_10bit(source) ? 2 : 0);
}

// Copies n adjacent samples.
static inline FRAMED_HD void keep_samples(enum pixel_format source, uint8_t *to,
                                          const uint8_t *from, int n)
{
    const int step = kept_bytes(source);
    if (step == 1) {
        memcpy(to, from, n);
        return;
    }
    int i = 0;
    for (; i + PIXELS <= n; i += PIXELS)
        store_u8(to + i, load_kept(source, from + i * step));
    if (i < n && n > PIXELS) {
        store_u8(to + n - PIXELS, load_kept(source, from + (n - PIXELS) * step));
        return;
    }
    for (; i < n; i++)
        to[i] = (uint8_t)kept_sample(source, from + i * step);
}

// Copies n samples of luma from pixel x on.
static inline void keep_luma(enum pixel_format source, uint8_t *to, const struct image *src, int x,
                             int y, int n)
{
    const struct component k = component_of(source, 0);
    const uint8_t *from = component_row(src, k, y) + x * k.step;
    if (source == PIXEL_P010)
        keep_samples(PIXEL_P010, to, from, n);
    else if (source == PIXEL_YUV420P10)
        keep_samples(PIXEL_YUV420P10, to, from, n);
    else if (k.step == 1)
        memcpy(to, from, n);
    else
        for (int i = 0; i < n; i++)
            to[i] = from[2 * i];
}

// Splits n pairs of alternating samples.
static inline FRAMED_HD void keep_split(enum pixel_format source, uint8_t *u, uint8_t *v,
                                        const uint8_t *from, int n)
{
    const int step = 2 * kept_bytes(source), block = LANES;
    int i = 0;
    for (; i + block <= n; i += block)
        halves_store(u + i, v + i, halves_split(load_kept(source, from + i * step)));
    if (i < n && n > block) {
        i = n - block;
        halves_store(u + i, v + i, halves_split(load_kept(source, from + i * step)));
        return;
    }
    for (; i < n; i++) {
        u[i] = (uint8_t)kept_sample(source, from + i * step);
        v[i] = (uint8_t)kept_sample(source, from + i * step + step / 2);
    }
}

static inline FRAMED_HD void zip_samples(uint8_t *to, const uint8_t *u, const uint8_t *v, int n)
{
    const int block = LANES;
    int i = 0;
    for (; i + block <= n; i += block)
        store_u8(to + 2 * i, halves_zip(halves_load(u + i, v + i)));
    if (i < n && n > block) {
        i = n - block;
        store_u8(to + 2 * i, halves_zip(halves_load(u + i, v + i)));
        return;
    }
    for (; i < n; i++) {
        to[2 * i] = u[i];
        to[2 * i + 1] = v[i];
    }
}

// Copies n samples of two rows, alternating.
static inline FRAMED_HD void keep_zipped(enum pixel_format source, uint8_t *to, const uint8_t *u,
                                         const uint8_t *v, int n)
{
    if (kept_bytes(source) == 1) {
        zip_samples(to, u, v, n);
        return;
    }
    for (int i = 0; i < n; i += KEPT_RUN) {
        const int run = n - i < KEPT_RUN ? n - i : KEPT_RUN;
        uint8_t kept[2][KEPT_RUN];
        keep_samples(source, kept[0], u + 2 * i, run);
        keep_samples(source, kept[1], v + 2 * i, run);
        zip_samples(to + 2 * i, kept[0], kept[1], run);
    }
}

static inline FRAMED_HD uint8_t *plane_row(const struct image *image, int plane, int y)
{
    return image->plane[plane].data + (ptrdiff_t)y * image->plane[plane].stride;
}

static inline FRAMED_HD void keep_chroma(const struct image *dst, const struct image *src,
                                         enum pixel_format source, enum pixel_format format, int y,
                                         int n)
{
    const bool pairs = source == PIXEL_NV12 || source == PIXEL_P010;
    const uint8_t *from = plane_row(src, 1, y);
    uint8_t *to = plane_row(dst, 1, y);
    if (pairs && format == PIXEL_NV12) {
        keep_samples(source, to, from, 2 * n);
    } else if (pairs) {
        keep_split(source, to, plane_row(dst, 2, y), from, n);
    } else if (format == PIXEL_NV12) {
        keep_zipped(source, to, from, plane_row(src, 2, y), n);
    } else {
        keep_samples(source, to, from, n);
        keep_samples(source, plane_row(dst, 2, y), plane_row(src, 2, y), n);
    }
}

static inline FRAMED_HD void keep_420_of(const struct image *dst, const struct image *src,
                                         const struct yuv *yuv, struct band band,
                                         enum pixel_format source)
{
    for (int y = band.y0; y < band.y1; y++) {
        keep_samples(source, plane_row(dst, 0, y), plane_row(src, 0, y), yuv->width);
        if (y % 2 == 0)
            keep_chroma(dst, src, source, yuv->format, y / 2, (yuv->width + 1) / 2);
    }
}

static inline void keep_420(const struct image *dst, const struct image *src, const struct yuv *yuv,
                            struct band band)
{
    switch (yuv->source) {
#define CASE(source)                                                                               \
    case source:                                                                                   \
        keep_420_of(dst, src, yuv, band, source);                                                  \
        break;
        CASE(PIXEL_NV12)
        CASE(PIXEL_YUV420P)
        CASE(PIXEL_P010)
        CASE(PIXEL_YUV420P10)
#undef CASE
    default:
        break;
    }
}

#endif
