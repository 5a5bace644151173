#include "kernels/yuv_resized.h"

#include <errno.h>
#include <stdlib.h>

#include "kernels/warp.h"

enum {
    RGB_BYTES = 3,
    PIECE_BYTES =
        2 * RGB_BYTES * IMAGE_SIDE_MAX, // bytes of RGB at a time: two rows of the widest picture
};

// Positions of 4:2:0 chroma along an axis of the result with `side` pixels.
static struct warp_points halved(int side, bool between)
{
    return (struct warp_points){.step = 2, .last = side - 1, .first = between ? 0.5 : 0};
}

static int add_warp(struct op *op, const struct warp_params *params, const struct image *src,
                    const struct warp_points points[2])
{
    struct warp *warp = &op->yuv.warps[op->yuv.n_warps];
    const int error = warp_make(warp, op->src_to_dst, op->dst_to_src, params, src, points);
    op->yuv.n_warps += error == 0;
    return error;
}

// Parameters of a warp to bytes that holds samples or levels with the `geometry`.
static struct warp_params bytes_of(const struct warp_params *geometry, enum order order,
                                   enum layout layout)
{
    struct warp_params params = *geometry;
    params.order = order;
    params.layout = layout;
    params.dtype = DTYPE_U8;
    params.colour = (struct colour){0};
    params.fill_mean = false;
    params.scale = 1;
    for (int c = 0; c < 3; c++) {
        params.mean[c] = 0;
        params.std[c] = 1;
    }
    return params;
}

static int kept_init(struct op *op, const struct warp_params *geometry, const struct image *src)
{
    const enum pixel_format format = op->dst.format;
    const enum siting siting = op->dst.colour.siting;
    const uint8_t *rgb = geometry->fill;
    uint8_t fill[3];
    for (int c = 0; c < 3; c++)
        fill[c] = (uint8_t)yuv_level(&op->yuv.yuv, c, rgb[0], rgb[1], rgb[2]);
    if (!format_is_420(format)) {
        struct warp_params all =
            bytes_of(geometry, ORDER_YUV, format == PIXEL_YUV24 ? LAYOUT_NHWC : LAYOUT_NCHW);
        for (int c = 0; c < 3; c++)
            all.fill[c] = fill[c];
        return add_warp(op, &all, src, NULL);
    }
    struct warp_params luma = bytes_of(geometry, ORDER_Y, LAYOUT_NCHW);
    struct warp_params chroma =
        bytes_of(geometry, ORDER_UV, format == PIXEL_NV12 ? LAYOUT_NHWC : LAYOUT_NCHW);
    luma.fill[0] = fill[0];
    chroma.fill[0] = fill[1];
    chroma.fill[1] = fill[2];
    const struct warp_points points[2] = {halved(op->dst.width, siting == SITING_CENTER),
                                          halved(op->dst.height, siting != SITING_TOPLEFT)};
    const int error = add_warp(op, &luma, src, NULL);
    return error ? error : add_warp(op, &chroma, src, points);
}

int yuv_resized_init(struct op *op, const struct warp_params *geometry, const struct image *src)
{
    struct yuv *yuv = &op->yuv;
    yuv->warps = calloc(YUV_WARPS_MAX, sizeof *yuv->warps);
    if (!yuv->warps)
        return -ENOMEM;
    int error;
    if (yuv->convert) {
        const struct warp_params rgb = bytes_of(geometry, ORDER_RGB, LAYOUT_NHWC);
        error = add_warp(op, &rgb, src, NULL);
        yuv->source = PIXEL_RGB24;
    } else {
        error = kept_init(op, geometry, src);
    }
    if (error)
        yuv_resized_finish(yuv);
    return error;
}

void yuv_resized_finish(struct yuv *yuv)
{
    for (int i = 0; i < yuv->n_warps; i++)
        warp_free(&yuv->warps[i]);
    free(yuv->warps);
}

static bool part_is_halved(const struct warp *warp)
{
    return warp->down.step == 2;
}

static struct band part_band(const struct warp *warp, struct band band)
{
    if (!part_is_halved(warp))
        return band;
    return (struct band){band.y0 / 2, (band.y1 + 1) / 2};
}

struct band yuv_resized_source_rows(const struct yuv *yuv, struct band out)
{
    struct band rows = {0, 0};
    for (int i = 0; i < yuv->n_warps; i++) {
        const struct band more = warp_source_rows(&yuv->warps[i], part_band(&yuv->warps[i], out));
        if (rows.y0 >= rows.y1)
            rows = more;
        if (more.y0 >= more.y1)
            continue;
        rows.y0 = more.y0 < rows.y0 ? more.y0 : rows.y0;
        rows.y1 = more.y1 > rows.y1 ? more.y1 : rows.y1;
    }
    return rows;
}

int yuv_parts(struct yuv_part parts[YUV_WARPS_MAX], const struct yuv *yuv, const struct image *dst,
              struct band band)
{
    for (int i = 0; i < yuv->n_warps; i++) {
        const struct warp *warp = &yuv->warps[i];
        struct yuv_part part = {warp, *dst, part_band(warp, band)};
        const int first = part_is_halved(warp) ? 1 : 0;
        for (int k = 0; k < PLANES_MAX - first; k++)
            part.dst.plane[k] = dst->plane[first + k];
        part.dst.width = warp->width;
        part.dst.height = warp->height;
        parts[i] = part;
    }
    return yuv->n_warps;
}

// Makes and converts the RGB picture in pieces of a few rows.
static void converted(const struct image *dst, const struct image *src, const struct yuv *yuv,
                      struct band band, warp_fn *warp, yuv_fn *convert)
{
    uint8_t rgb[PIECE_BYTES];
    struct image picture = {.format = PIXEL_RGB24, .width = yuv->width, .height = yuv->height};
    image_lay_out(&picture, NULL);
    const ptrdiff_t stride = picture.plane[0].stride;
    const int most = (int)(PIECE_BYTES / stride) & ~1;
    for (int y = band.y0; y < band.y1; y += most) {
        const struct band piece = {y, y + most < band.y1 ? y + most : band.y1};
        picture.plane[0].data = (uint8_t *)((uintptr_t)rgb - (uintptr_t)(y * stride));
        warp(&picture, src, yuv->warps, piece, false);
        convert(dst, &picture, yuv, piece);
    }
}

void yuv_resized(const struct image *dst, const struct image *src, const struct yuv *yuv,
                 struct band band, bool filled, warp_fn *warp, yuv_fn *convert)
{
    struct yuv_part parts[YUV_WARPS_MAX];
    if (yuv->convert) {
        converted(dst, src, yuv, band, warp, convert);
        return;
    }
    const int n = yuv_parts(parts, yuv, dst, band);
    for (int i = 0; i < n; i++)
        warp(&parts[i].dst, src, parts[i].warp, parts[i].band, filled);
}
