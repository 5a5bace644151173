// The op `yuv`; its reference's bytes are the contract.
#include "kernels/yuv.h"

#include <errno.h>
#include <stdlib.h>

enum {
    RGB_BYTES = 3,
    PIECE_BYTES =
        2 * RGB_BYTES * IMAGE_SIDE_MAX, // bytes of RGB at a time: two rows of the widest picture
};

// --- another geometry

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

static void yuv_resized_finish(struct yuv *yuv)
{
    for (int i = 0; i < yuv->n_warps; i++)
        warp_free(&yuv->warps[i]);
    free(yuv->warps);
}

// Makes op->yuv.warps and the op's matrices for a result with the colour and format of op->dst.
// `geometry` has its size. The conversion in op->yuv is set; here it becomes one from RGB24. Errors
// as op_init; on success yuv_resized_finish frees it.
static int yuv_resized_init(struct op *op, const struct warp_params *geometry,
                            const struct image *src)
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

// As op_source_rows.
static struct band yuv_resized_source_rows(const struct yuv *yuv, struct band out)
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

// --- the op

// Resolves the result's colour and sets the conversion. `height`: the result's. Returns 0, or
// -EINVAL for a colour that the kernel cannot make.
static int yuv_colour(struct yuv *yuv, const struct yuv_params *params, const struct image *src,
                      int height, struct colour *ret)
{
    const bool rgb = source_is_rgb(src->format);
    const struct colour from = colour_resolve(src->colour, src->height);
    const struct colour none = {0};
    struct colour to = colour_resolve(colour_override(params->colour, rgb ? none : from), height);
    if (to.matrix == MATRIX_BT601_8BIT) {
        if (params->colour.range == RANGE_FULL)
            return -EINVAL;
        to.range = RANGE_LIMITED;
    }
    yuv->convert = rgb || params->geometry.lut || !colour_same_samples(from, to);
    to.siting = from.siting;
    if (format_is_420(params->format) && (yuv->convert || source_has_chroma(src->format))) {
        const struct pixel_layout layout = pixel_layout_of(src->format);
        if (yuv->convert || layout.sub_x == 0)
            to.siting = SITING_CENTER; // the mean of four pixels
        else if (layout.sub_y == 0 && to.siting == SITING_TOPLEFT)
            to.siting = SITING_LEFT; // the mean of two, one above the other
    }
    if (params->colour.siting != SITING_UNSPECIFIED && params->resized && !yuv->convert)
        to.siting = params->colour.siting;
    else if (params->colour.siting != SITING_UNSPECIFIED && params->colour.siting != to.siting)
        return -EINVAL;
    yuv->chroma_x = chroma_position_x(src->format, from.siting);
    yuv->chroma_y = chroma_position_y(src->format, from.siting);
    yuv->rgb = colour_to_rgb(from, pixel_layout_of(src->format).bits);
    yuv->yuv = colour_to_yuv(to);
    *ret = to;
    return 0;
}

// The source's own geometry.
static struct warp_params geometry_kept(const struct yuv_params *params, const struct image *src)
{
    return (struct warp_params){.width = src->width,
                                .height = src->height,
                                .has_affine = true,
                                .affine = {1, 0, 0, 0, 1, 0},
                                .lut = params->geometry.lut};
}

static int yuv_init(struct op *op, const struct op_params *op_params, const struct image *src)
{
    const struct yuv_params *params = &op_params->yuv;
    struct warp_params geometry = geometry_kept(params, src);
    int width = src->width, height = src->height;
    if (!(pixel_layout_of(params->format).uses & FORMAT_RESULT))
        return -EINVAL;
    if (params->resized && yuv_geometry(&geometry, &width, &height, params, src) < 0)
        return -EINVAL;
    op->yuv.width = width;
    op->yuv.height = height;
    op->yuv.source = pixel_format_read_as(src->format);
    op->yuv.format = params->format;
    op->dst = (struct image){.format = params->format, .width = width, .height = height};
    op->batch = -1;
    op->dst_bytes = image_lay_out(&op->dst, NULL);
    const int error = yuv_colour(&op->yuv, params, src, height, &op->dst.colour);
    if (error || (!params->resized && !params->geometry.lut))
        return error;
    return yuv_resized_init(op, &geometry, src);
}

static void yuv_finish(struct op *op)
{
    yuv_resized_finish(&op->yuv);
}

static struct band yuv_source_rows(const struct op *op, struct band out)
{
    const struct yuv *yuv = &op->yuv;
    if (yuv->warps)
        return yuv_resized_source_rows(yuv, out);
    if (!source_has_chroma(yuv->source) || position_sub(yuv->chroma_y) == 0 ||
        (format_is_420(yuv->format) && !yuv->convert))
        return out;
    return with_chroma_rows(out, yuv->chroma_y, out.y0 * 65536, (out.y1 - 1) * 65536, 0,
                            yuv->height);
}

// --- the reference

static inline FRAMED_HD void yuv_band(const struct image *dst, const struct image *src,
                                      const struct yuv *op_yuv, enum pixel_format format,
                                      bool convert, bool halved, struct band band)
{
    const struct yuv yuv = *op_yuv; // copies, which no store can change
    const struct image to = *dst, from = *src;
    const struct pixel_layout layout = pixel_layout_of(yuv.format);
    for (int y = band.y0; y < band.y1; y += 1 + halved)
        for (int x = 0; x < yuv.width; x += 1 + halved)
            yuv_block(&to, &from, &yuv, NULL, layout.component, format, convert, halved, x, y);
}

static inline FRAMED_HD void yuv_band_of(const struct image *dst, const struct image *src,
                                         const struct yuv *yuv, enum pixel_format format,
                                         struct band band)
{
    const bool halved = format_is_420(yuv->format);
    if (yuv->convert && halved)
        yuv_band(dst, src, yuv, format, true, true, band);
    else if (yuv->convert)
        yuv_band(dst, src, yuv, format, true, false, band);
    else if (halved)
        yuv_band(dst, src, yuv, format, false, true, band);
    else
        yuv_band(dst, src, yuv, format, false, false, band);
}

static void yuv_reference(const struct image *dst, const struct image *src, const struct yuv *yuv,
                          struct band band)
{
    switch (yuv->source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        yuv_band_of(dst, src, yuv, format, band);                                                  \
        break;
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        break;
    }
}

static void yuv_op_reference(const struct image *dst, const struct image *src, const struct op *op,
                             struct band band, bool filled)
{
    if (op->yuv.warps)
        yuv_resized(dst, src, &op->yuv, band, filled, warp_reference, yuv_reference);
    else
        yuv_reference(dst, src, &op->yuv, band);
}

const struct op_type yuv_type = {
    .name = "yuv",
    .init = yuv_init,
    .finish = yuv_finish,
    .source_rows = yuv_source_rows,
    .reference = yuv_op_reference,
};
