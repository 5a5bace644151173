// 4:2:0 samples that keep their values in another 4:2:0 layout, in wide registers. A template, see
// fixed_lanes.h.
#ifndef FRAMED_KERNELS_CPU_YUV_KEPT_H
#define FRAMED_KERNELS_CPU_YUV_KEPT_H

#include "kernels/cpu/fixed_lanes.h"
#include "kernels/ops.h"

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
