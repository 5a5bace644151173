// The op `yuv`; its reference's bytes are the contract.
#include <errno.h>

#include "kernels/warp.h"
#include "kernels/yuv_pixel.h"
#include "kernels/yuv_resized.h"

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
