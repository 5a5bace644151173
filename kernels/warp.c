// The op `warp`; its reference's bytes are the contract.
#include "kernels/warp.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- elements

size_t element_bytes(enum dtype dtype)
{
    static const size_t bytes[] = {
        [DTYPE_U8] = 1, [DTYPE_S8] = 1, [DTYPE_F16] = 2, [DTYPE_F32] = 4};
    return bytes[dtype];
}

static int integer_of(double x, int lo, int hi)
{
    return (int)fmin(fmax(floor(x + 0.5), lo), hi);
}

// IEEE 754 binary16; written by hand because not every supported compiler has the type.
static uint16_t half_of(double x)
{
    const int sign = signbit(x) ? 0x8000 : 0;
    const double magnitude = fabs(x);
    if (magnitude >= 0x1p16) // smaller values that round up to it become infinity below
        return (uint16_t)(sign | 0x7c00);
    int exponent;
    frexp(magnitude, &exponent);
    if (magnitude < 0x1p-14) // subnormal: same spacing as the smallest normal numbers
        exponent = -13;
    // A normal number has 1024 to 2048 steps; the leading one increments the exponent field.
    const int steps = (int)rint(ldexp(magnitude, 11 - exponent));
    return (uint16_t)(sign | (((exponent + 13) << 10) + steps));
}

static struct level_sum sum_of(double slope, double origin)
{
    // The finest grid on which the value of every level fits a float.
    const double reach = fmax(fabs(origin), fabs(origin + 255 * slope));
    if (!isnormal(reach))
        return (struct level_sum){NAN, NAN, NAN, NAN}; // sum_holds rejects it
    const double grid = ldexp(1, ilogb(reach) - 23);
    const double a = rint(slope / grid) * grid, b = rint(origin / grid) * grid;
    return (struct level_sum){(float)a, (float)b, (float)(slope - a), (float)(origin - b)};
}

static bool sum_holds(const struct warp *warp, int c)
{
    const struct level_sum sum = warp->sum[c];
    for (int level = 0; level < 256; level++) {
        const float x = (float)level, y = fmaf(x, sum.a, sum.b) + fmaf(x, sum.c, sum.d);
        const float *table = &warp->table.f32[c][level];
        if (isnan(y)) // in no table, and half_of does not take it
            return false;
        if (warp->dtype == DTYPE_F16 ? half_of(y) != warp->table.f16[c][level]
                                     : memcmp(&y, table, sizeof(y)) != 0)
            return false;
    }
    return true;
}

static void sums_init(struct warp *warp, const struct warp_params *params)
{
    warp->summed = warp->dtype == DTYPE_F16 || warp->dtype == DTYPE_F32;
    for (int c = 0; warp->summed && c < warp->channels; c++) {
        warp->sum[c] = sum_of(params->scale / params->std[c], -params->mean[c] / params->std[c]);
        warp->summed = sum_holds(warp, c);
    }
}

static void fill_init(struct warp *warp, const struct warp_params *params)
{
    const size_t bytes = element_bytes(warp->dtype);
    for (int c = 0; c < warp->channels; c++) {
        const double mean = params->mean[c] / params->scale;
        warp->fill[c] = params->fill[c];
        if (params->fill_mean) // not finite for a scale of 0
            warp->fill[c] = (uint8_t)(isfinite(mean) ? integer_of(mean, 0, 255) : 0);
        else
            memcpy(&warp->fill_element[c],
                   (const uint8_t *)&warp->table + (256 * c + warp->fill[c]) * bytes, bytes);
    }
}

// Fills warp->table for warp->dtype and warp->channels: (level * scale - mean) / std in double,
// then rounded once: integers half up and saturated, floats to nearest even. Then looks for sums
// with the same results, for versions that compute instead of looking up. Sets the fill, too.
static void element_tables_init(struct warp *warp, const struct warp_params *params)
{
    for (int c = 0; c < warp->channels; c++) {
        for (int level = 0; level < 256; level++) {
            const double x = (level * params->scale - params->mean[c]) / params->std[c];
            switch (warp->dtype) {
            case DTYPE_U8:
                warp->table.u8[c][level] = (uint8_t)integer_of(x, 0, 255);
                break;
            case DTYPE_S8:
                warp->table.s8[c][level] = (int8_t)integer_of(x, -128, 127);
                break;
            case DTYPE_F16:
                warp->table.f16[c][level] = half_of(x);
                break;
            case DTYPE_F32:
                warp->table.f32[c][level] = (float)x;
                break;
            }
        }
    }
    sums_init(warp, params);
    fill_init(warp, params);
}

// --- the warp

// With these, luma6 equals channel6.
static const struct yuv_to_rgb values_kept = {.y = 1 << 14, .offset = 128 * 64 + LEVEL6_HALF};

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

static struct colour colour_of(const struct warp_params *params, const struct image *src)
{
    return colour_resolve(colour_override(params->colour, src->colour), src->height);
}

int warp_make(struct warp *warp, double src_to_dst[6], double dst_to_src[6],
              const struct warp_params *params, const struct image *src,
              const struct warp_points points[2])
{
    const enum order order = params->order;
    if (!size_is_valid(params->width, params->height) || !normalisation_is_valid(params))
        return -EINVAL;
    const struct colour colour = colour_of(params, src);
    *warp = (struct warp){.source = pixel_format_read_as(src->format)};
    warp->channels = order == ORDER_GRAY || order == ORDER_Y ? 1 : order == ORDER_UV ? 2 : 3;
    warp->dtype = params->dtype;
    warp->layout = params->layout;
    warp->filter = params->filter;
    warp->edge = params->edge;
    warp->order = order == ORDER_Y ? ORDER_GRAY : order;
    warp->lut = params->lut;
    warp->luma = luma_position();
    warp->chroma_x = chroma_position_x(src->format, colour.siting);
    warp->chroma_y = chroma_position_y(src->format, colour.siting);
    warp->rgb =
        order >= ORDER_YUV ? values_kept : colour_to_rgb(colour, pixel_layout_of(src->format).bits);
    colour_gray_weights(colour.matrix, warp->gray);
    element_tables_init(warp, params);
    int error = geometry_init(warp, src_to_dst, dst_to_src, params, src, points);
    if (!error && filter_weighs(warp->filter)) {
        error = filter_init(warp, dst_to_src);
        if (error)
            free(warp->colx);
    }
    if (!error)
        lut_ref(warp->lut);
    return error;
}

void warp_free(struct warp *warp)
{
    filter_finish(warp);
    free(warp->colx);
    lut_unref(warp->lut);
}

static int warp_init(struct op *op, const struct op_params *op_params, const struct image *src)
{
    const struct warp_params *params = &op_params->warp;
    struct warp *warp = &op->warp;
    if (params->order > ORDER_GRAY)
        return -EINVAL;
    const int error = warp_make(warp, op->src_to_dst, op->dst_to_src, params, src, NULL);
    if (error)
        return error;
    op->dst = (struct image){.format = PIXEL_TENSOR,
                             .width = warp->width,
                             .height = warp->height,
                             .colour = colour_of(params, src)};
    op->dst_bytes =
        element_bytes(warp->dtype) * warp->channels * (size_t)warp->width * warp->height;
    tensor_lay_out(warp, &op->dst);
    op->batch = (int)warp->dtype;
    return 0;
}

static void warp_finish(struct op *op)
{
    warp_free(&op->warp);
}

static struct band warp_op_rows(const struct op *op, struct band out)
{
    return warp_source_rows(&op->warp, out);
}

// --- the reference

static inline FRAMED_HD void warp_band(const struct image *dst, const struct image *src,
                                       const struct warp *op_warp, enum pixel_format format,
                                       struct band band)
{
    const struct warp warp = *op_warp; // copies, which no store can change
    const struct image to = *dst, from = *src;
    const bool planar = warp.layout == LAYOUT_NCHW;
    const int step = planar ? 1 : warp.channels;
    const size_t bytes = element_bytes(warp.dtype);
    for (int y = band.y0; y < band.y1; y++) {
        for (int x = 0; x < warp.width; x++) {
            uint8_t level[3] = {0};
            const bool seen = pixel_levels(&from, &warp, format, x, y, level);
            for (int c = 0; c < warp.channels; c++) {
                const struct plane *plane = &to.plane[planar ? c : 0];
                uint8_t *row = plane->data + (ptrdiff_t)y * plane->stride;
                const size_t i = (size_t)x * step + (planar ? 0 : c);
                if (!seen)
                    memcpy(row + i * bytes, &warp.fill_element[c], bytes);
                else if (warp.dtype == DTYPE_F32)
                    ((float *)row)[i] = warp.table.f32[c][level[c]];
                else if (warp.dtype == DTYPE_F16)
                    ((uint16_t *)row)[i] = warp.table.f16[c][level[c]];
                else
                    row[i] = warp.table.u8[c][level[c]];
            }
        }
    }
}

void warp_reference(const struct image *dst, const struct image *src, const struct warp *warp,
                    struct band band, bool filled)
{
    (void)filled;
    switch (warp->source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        warp_band(dst, src, warp, format, band);                                                   \
        break;
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        break;
    }
}

static void warp_op_reference(const struct image *dst, const struct image *src, const struct op *op,
                              struct band band, bool filled)
{
    warp_reference(dst, src, &op->warp, band, filled);
}

const struct op_type warp_type = {
    .name = "warp",
    .init = warp_init,
    .finish = warp_finish,
    .source_rows = warp_op_rows,
    .reference = warp_op_reference,
};
