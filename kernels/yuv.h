// yuv without its op: its parts for every version, for C and CUDA. With fixed.h and warp.h this is
// the specification: faster versions give the same bytes.
#ifndef FRAMED_KERNELS_YUV_H
#define FRAMED_KERNELS_YUV_H

#include "kernels/warp.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- a result with another geometry than its source's, made by warps

// Part of a result with kept samples, written by one of the warps.
struct yuv_part {
    const struct warp *warp;
    struct image dst; // the planes that the warp writes; they may be laid out from NULL
    struct band band; // of these planes
};

// Returns the number of parts.
int yuv_parts(struct yuv_part parts[YUV_WARPS_MAX], const struct yuv *, const struct image *dst,
              struct band band);

// yuv without a geometry, of one version.
typedef void yuv_fn(const struct image *dst, const struct image *src, const struct yuv *,
                    struct band band);

// Like op_fn, with a version's warp and conversion.
void yuv_resized(const struct image *dst, const struct image *src, const struct yuv *,
                 struct band band, bool filled, warp_fn *warp, yuv_fn *convert);

// --- one block of pixels, from source samples to result samples

// In all functions here `format` is yuv->source.

// Component 1 or 2 of a YUV source at pixel (x, y): 7 fraction bits centred on 128.
static inline FRAMED_HD int chroma_at(const struct image *src, const struct yuv *yuv,
                                      enum pixel_format format, int c, int x, int y)
{
    if (!source_has_chroma(format))
        return 0;
    return sample_bilinear(src, format, c, chroma_taps(yuv->chroma_x, x * 65536, 0, yuv->width),
                           chroma_taps(yuv->chroma_y, y * 65536, 0, yuv->height));
}

// R, G and B of source pixel (x, y).
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

// R, G and B of pixel (x, y) of the picture made by a warp of bytes.
static inline FRAMED_HD void resized_rgb_at(const struct image *src, const struct warp *warp,
                                            enum pixel_format format, int x, int y, uint8_t rgb[3])
{
    if (!pixel_levels(src, warp, format, x, y, rgb))
        for (int c = 0; c < 3; c++)
            rgb[c] = (uint8_t)warp->fill_element[c];
}

// Sample (x, y) of component c, with its value kept; x and y count in that component's plane.
static inline FRAMED_HD int kept_at(const struct image *src, enum pixel_format format, int c, int x,
                                    int y)
{
    const struct component k = component_of(format, c);
    const int sample = sample_load(format, component_row(src, k, y) + x * k.step);
    return kept_of(sample, source_is_10bit(format) ? 2 : 0);
}

// Mean of component c in the block of 2 x 2 pixels from (x, y) on, with values kept: 1, 2 or 4
// samples, by the source's subsampling. Samples beyond an odd edge repeat the edge's.
static inline FRAMED_HD int kept_mean(const struct image *src, const struct yuv *yuv,
                                      enum pixel_format format, int c, int x, int y)
{
    if (!source_has_chroma(format))
        return 128;
    const struct component k = component_of(format, c);
    const int sub_x = position_sub(yuv->chroma_x), sub_y = position_sub(yuv->chroma_y);
    int sum = 0;
    FRAMED_ROLLED
    for (int row = 0; row < 2 >> sub_y; row++) {
        const int last = (yuv->height - 1) >> sub_y, at = (y >> sub_y) + row;
        const uint8_t *samples = component_row(src, k, at < last ? at : last);
        FRAMED_ROLLED
        for (int column = 0; column < 2 >> sub_x; column++) {
            const int last_x = (yuv->width - 1) >> sub_x, at_x = (x >> sub_x) + column;
            sum += sample_load(format, samples + (at_x < last_x ? at_x : last_x) * k.step);
        }
    }
    return kept_of(sum, source_is_10bit(format) ? 4 - sub_x - sub_y : 2 - sub_x - sub_y);
}

static inline FRAMED_HD void yuv_store(const struct image *dst, struct component k, int x, int y,
                                       int level)
{
    component_row(dst, k, y)[x * k.step] = (uint8_t)level;
}

// Makes the block of one chroma sample of the result: 2 x 2 pixels from (x, y) on in 4:2:0, one
// pixel in 4:4:4. `to`: the result's components; `convert`: yuv->convert; `halved`: the result is
// 4:2:0; pass constants for code without branches. `resized`: NULL, or the warp that makes the
// picture to convert; `format` is then its source.
static inline FRAMED_HD void yuv_block(const struct image *dst, const struct image *src,
                                       const struct yuv *yuv, const struct warp *resized,
                                       const struct component to[3], enum pixel_format format,
                                       bool convert, bool halved, int x, int y)
{
    int sum[3] = {0, 0, 0};
    FRAMED_ROLLED
    for (int i = 0; i < (halved ? 4 : 1); i++) {
        // Beyond an odd right or bottom edge the edge's pixel is repeated.
        const int px = x + i % 2 < yuv->width ? x + i % 2 : x;
        const int py = y + i / 2 < yuv->height ? y + i / 2 : y;
        int luma;
        if (convert) {
            uint8_t rgb[3];
            if (resized)
                resized_rgb_at(src, resized, format, px, py, rgb);
            else
                rgb_at(src, yuv, format, px, py, rgb);
            luma = yuv_level(&yuv->yuv, 0, rgb[0], rgb[1], rgb[2]);
            for (int c = 0; c < 3; c++)
                sum[c] += rgb[c];
        } else {
            luma = kept_at(src, format, 0, px, py);
        }
        yuv_store(dst, to[0], px, py, luma);
    }
    const int shift = halved ? 2 : 0;
    const int r = mean_of(sum[0], shift), g = mean_of(sum[1], shift), b = mean_of(sum[2], shift);
    FRAMED_ROLLED
    for (int c = 1; c < 3; c++) {
        const int level = convert  ? yuv_level(&yuv->yuv, c, r, g, b)
                          : halved ? kept_mean(src, yuv, format, c, x, y)
                                   : kept_interpolated(chroma_at(src, yuv, format, c, x, y));
        yuv_store(dst, to[c], x >> halved, y >> halved, level);
    }
}

#ifdef __cplusplus
}
#endif
#endif
