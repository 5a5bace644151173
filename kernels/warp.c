// The op `warp`, and its reference: it is the specification, faster versions give the same bytes.
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/colour.h"
#include "kernels/element.h"
#include "kernels/geometry.h"
#include "kernels/sample.h"

static bool normalisation_is_valid(const struct warp_params *params)
{
    bool valid = isfinite(params->scale);
    for (int c = 0; c < 3; c++)
        valid =
            valid && isfinite(params->mean[c]) && isfinite(params->std[c]) && params->std[c] != 0;
    return valid;
}

static void tensor_lay_out(const struct warp *warp, struct image *dst)
{
    const bool planar = warp->layout == LAYOUT_NCHW;
    const size_t row = element_bytes(warp->dtype) * warp->width * (planar ? 1 : warp->channels);
    for (int i = 0; i < (planar ? warp->channels : 1); i++) {
        dst->plane[i].data = (uint8_t *)(uintptr_t)(i * row * warp->height);
        dst->plane[i].stride = (ptrdiff_t)row;
    }
}

static int warp_init(struct op *op, const struct op_params *op_params, const struct image *src)
{
    const struct warp_params *params = &op_params->warp;
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
    warp->luma = luma_position();
    warp->chroma_x = chroma_position_x(src->format, colour.siting);
    warp->chroma_y = chroma_position_y(src->format, colour.siting);
    warp->rgb = colour_to_rgb(colour, pixel_layout_of(src->format).bits);
    colour_gray_weights(colour.matrix, warp->gray);
    for (int c = 0; c < warp->channels; c++)
        warp->fill[c] = params->fill[c];
    element_tables_init(warp, params);

    op->dst = (struct image){
        .format = PIXEL_TENSOR, .width = warp->width, .height = warp->height, .colour = colour};
    op->dst_bytes =
        element_bytes(warp->dtype) * warp->channels * (size_t)warp->width * warp->height;
    tensor_lay_out(warp, &op->dst);
    op->batch = (int)warp->dtype;
    return geometry_init(warp, params, src);
}

static void warp_finish(struct op *op)
{
    free(op->warp.colx);
}

// --- the reference

enum { RUN = 256 }; // pixels whose levels are made before they are stored as elements

static inline FRAMED_HD void make_run(const struct image *src, const struct warp *warp,
                                      enum pixel_format format, int x, int y, int n,
                                      uint8_t level[3][RUN])
{
    for (int i = 0; i < n; i++) {
        const int32_t sx = warp->colx[x + i] + warp->rowx[y];
        const int32_t sy = warp->coly[x + i] + warp->rowy[y];
        uint8_t pixel[3] = {0};
        warp_levels(src, warp, format, sx, sy, pixel);
        for (int c = 0; c < 3; c++)
            level[c][i] = pixel[c];
    }
}

// The levels of n output pixels from (x, y) on, channels in the tensor's order.
static void make_levels(const struct image *src, const struct warp *warp, int x, int y, int n,
                        uint8_t level[3][RUN])
{
    switch (warp->source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        make_run(src, warp, format, x, y, n, level);                                               \
        break;
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        break;
    }
}

// Channel c of n elements, `step` elements from one to the next.
static void store_channel(void *to, int step, const struct warp *warp, int c,
                          const uint8_t level[RUN], int n)
{
    switch (warp->dtype) {
    case DTYPE_U8:
    case DTYPE_S8:
        for (int i = 0; i < n; i++)
            ((uint8_t *)to)[i * step] = warp->table.u8[c][level[i]];
        break;
    case DTYPE_F16:
        for (int i = 0; i < n; i++)
            ((uint16_t *)to)[i * step] = warp->table.f16[c][level[i]];
        break;
    case DTYPE_F32:
        for (int i = 0; i < n; i++)
            ((float *)to)[i * step] = warp->table.f32[c][level[i]];
        break;
    }
}

static void store_levels(const struct image *dst, const struct warp *warp, int x, int y, int n,
                         uint8_t level[3][RUN])
{
    const bool planar = warp->layout == LAYOUT_NCHW;
    const int step = planar ? 1 : warp->channels;
    const size_t bytes = element_bytes(warp->dtype);
    for (int c = 0; c < warp->channels; c++) {
        const struct plane *plane = &dst->plane[planar ? c : 0];
        const size_t first = (size_t)x * step + (planar ? 0 : c);
        store_channel(plane->data + (ptrdiff_t)y * plane->stride + first * bytes, step, warp, c,
                      level[c], n);
    }
}

static void warp_reference(const struct image *dst, const struct image *src, const struct op *op,
                           struct band band, bool filled)
{
    (void)filled;
    const struct warp *warp = &op->warp;
    uint8_t level[3][RUN];
    for (int y = band.y0; y < band.y1; y++) {
        for (int x = 0; x < warp->width; x += RUN) {
            const int n = warp->width - x < RUN ? warp->width - x : RUN;
            make_levels(src, warp, x, y, n, level);
            store_levels(dst, warp, x, y, n, level);
        }
    }
}

const struct op_type warp_type = {
    .name = "warp",
    .init = warp_init,
    .finish = warp_finish,
    .source_rows = warp_source_rows,
    .reference = warp_reference,
};
