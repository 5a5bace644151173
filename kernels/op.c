#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/colour.h"
#include "kernels/element.h"
#include "kernels/geometry.h"
#include "kernels/sample.h"

static bool size_is_valid(int width, int height)
{
    return width >= 1 && width <= IMAGE_SIDE_MAX && height >= 1 && height <= IMAGE_SIDE_MAX;
}

static bool normalisation_is_valid(const struct warp_params *params)
{
    bool valid = isfinite(params->scale);
    for (int c = 0; c < 3; c++)
        valid =
            valid && isfinite(params->mean[c]) && isfinite(params->std[c]) && params->std[c] != 0;
    return valid;
}

static void tensor_lay_out(const struct warp *warp, struct image *dst, void *base)
{
    const uintptr_t start = (uintptr_t)base; // an integer, since base may be NULL
    const bool planar = warp->layout == LAYOUT_NCHW;
    const size_t row = element_bytes(warp->dtype) * warp->width * (planar ? 1 : warp->channels);
    for (int i = 0; i < (planar ? warp->channels : 1); i++) {
        dst->plane[i].data = (uint8_t *)(start + i * row * warp->height);
        dst->plane[i].stride = (ptrdiff_t)row;
    }
}

static int warp_init(struct op *op, const struct warp_params *params, const struct image *src)
{
    if (!size_is_valid(params->width, params->height) || !normalisation_is_valid(params))
        return -EINVAL;
    const struct colour colour =
        colour_resolve(colour_override(params->colour, src->colour), src->height);
    struct warp *warp = &op->warp;
    warp->width = params->width;
    warp->height = params->height;
    warp->channels = params->order == ORDER_GRAY ? 1 : 3;
    warp->source = src->format;
    warp->dtype = params->dtype;
    warp->layout = params->layout;
    warp->order = params->order;
    warp->luma = (struct position){.add = 2, .shift = 2};
    warp->chroma_x = siting_position_x(colour.siting);
    warp->chroma_y = siting_position_y(colour.siting);
    warp->rgb = colour_to_rgb(colour, pixel_layout_of(src->format).bits);
    colour_gray_weights(colour.matrix, warp->gray);
    for (int c = 0; c < warp->channels; c++)
        warp->fill[c] = params->fill[c];
    element_tables_init(warp, params);

    op->dst = (struct image){
        .format = PIXEL_TENSOR, .width = warp->width, .height = warp->height, .colour = colour};
    op->dst_bytes =
        element_bytes(warp->dtype) * warp->channels * (size_t)warp->width * warp->height;
    tensor_lay_out(warp, &op->dst, NULL);
    return geometry_init(warp, params, src);
}

// What the samples of the result mean. 0, or -EINVAL where the kernel cannot give what is asked
// for.
static int yuv_colour(struct yuv *yuv, const struct yuv_params *params, const struct image *src,
                      struct colour *ret)
{
    const bool rgb = source_is_rgb(src->format);
    const struct colour from = colour_resolve(src->colour, src->height);
    const struct colour none = {0};
    struct colour to =
        colour_resolve(colour_override(params->colour, rgb ? none : from), src->height);
    if (to.matrix == MATRIX_BT601_8BIT) {
        if (params->colour.range == RANGE_FULL)
            return -EINVAL;
        to.range = RANGE_LIMITED;
    }
    yuv->convert = rgb || !colour_same_samples(from, to);
    if (yuv->convert && format_is_420(params->format))
        to.siting = SITING_CENTER; // the mean of four pixels
    else
        to.siting = from.siting;
    if (params->colour.siting != SITING_UNSPECIFIED && params->colour.siting != to.siting)
        return -EINVAL;
    yuv->chroma_x = siting_position_x(from.siting);
    yuv->chroma_y = siting_position_y(from.siting);
    yuv->rgb = colour_to_rgb(from, pixel_layout_of(src->format).bits);
    yuv->yuv = colour_to_yuv(to);
    *ret = to;
    return 0;
}

static int yuv_init(struct op *op, const struct yuv_params *params, const struct image *src)
{
    if (!(pixel_layout_of(params->format).uses & FORMAT_RESULT))
        return -EINVAL;
    op->yuv.width = src->width;
    op->yuv.height = src->height;
    op->yuv.source = src->format;
    op->yuv.format = params->format;
    op->dst = (struct image){.format = params->format, .width = src->width, .height = src->height};
    op->dst_bytes = image_lay_out(&op->dst, NULL);
    return yuv_colour(&op->yuv, params, src, &op->dst.colour);
}

int op_init(struct op *op, const struct op_params *params, const struct image *src)
{
    static _Atomic uint64_t serial;
    *op = (struct op){.kind = params->kind, .serial = ++serial};
    if (!(pixel_layout_of(src->format).uses & FORMAT_SOURCE) ||
        !size_is_valid(src->width, src->height))
        return -EINVAL;
    return params->kind == OP_WARP ? warp_init(op, &params->warp, src)
                                   : yuv_init(op, &params->yuv, src);
}

void op_finish(struct op *op)
{
    if (op->kind == OP_WARP)
        free(op->warp.colx);
    *op = (struct op){0};
}

void op_lay_out(const struct op *op, struct image *dst, void *base)
{
    *dst = op->dst;
    if (op->kind == OP_WARP)
        tensor_lay_out(&op->warp, dst, base);
    else
        image_lay_out(dst, base);
}

struct band op_source_rows(const struct op *op, struct band out)
{
    return op->kind == OP_WARP ? warp_source_rows(&op->warp, out) : yuv_source_rows(&op->yuv, out);
}
