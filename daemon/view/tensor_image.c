#include "daemon/view/rendition.h"

#include <math.h>

#include "kernels/detect_number.h"

// The samples of one channel in memory.
struct samples {
    const uint8_t *first;
    ptrdiff_t stride; // bytes from a row to the next
    int step;         // elements from a sample to the next
    int width, height;
    enum dtype dtype;
};

// level = element * slope + origin: converts an element back to the level it was made from.
struct channel_levels {
    float slope, origin;
};

size_t tensor_image_bytes(const struct op *op)
{
    return (size_t)op->dst.width * (size_t)op->dst.height * CHANNELS_MAX;
}

static void read_row(float *to, const struct samples *samples, int y)
{
    const void *row = samples->first + y * samples->stride;
    const int n = samples->width, step = samples->step;
    switch (samples->dtype) {
    case DTYPE_U8:
        for (int x = 0; x < n; x++)
            to[x] = ((const uint8_t *)row)[x * step];
        break;
    case DTYPE_S8:
        for (int x = 0; x < n; x++)
            to[x] = ((const int8_t *)row)[x * step];
        break;
    case DTYPE_F16:
        for (int x = 0; x < n; x++)
            to[x] = float_of_half(((const uint16_t *)row)[x * step]);
        break;
    case DTYPE_F32:
        for (int x = 0; x < n; x++)
            to[x] = ((const float *)row)[x * step];
        break;
    }
}

// Fills `to`, tight rows, and the channel's values.
static void show_channel(uint8_t *to, const struct samples *samples, struct channel_levels levels,
                         struct channel *channel)
{
    float row[samples->width];
    float min = INFINITY, max = -INFINITY;
    double sum = 0;
    for (int y = 0; y < samples->height; y++, to += samples->width) {
        float row_sum = 0;
        read_row(row, samples, y);
        for (int x = 0; x < samples->width; x++) {
            const float level = row[x] * levels.slope + levels.origin + 0.5F;
            min = row[x] < min ? row[x] : min;
            max = row[x] > max ? row[x] : max;
            row_sum += row[x];
            to[x] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
        }
        sum += (double)row_sum;
    }
    channel->min = (double)min;
    channel->max = (double)max;
    channel->mean = sum / samples->width / samples->height;
}

static struct image gray_image(uint8_t *to, int width, int height)
{
    struct image image = {.format = PIXEL_GRAY,
                          .width = width,
                          .height = height,
                          .colour = {MATRIX_BT601, RANGE_FULL, SITING_CENTER}};
    image_lay_out(&image, to);
    return image;
}

static bool show_warp(struct tensor_image *ret, uint8_t *to, const struct warp *warp,
                      const struct warp_params *params, const uint8_t *data, int plane)
{
    static const char *const names[] = {"r", "g", "b"};
    static const int bytes[] = {[DTYPE_U8] = 1, [DTYPE_S8] = 1, [DTYPE_F16] = 2, [DTYPE_F32] = 4};
    const int n = warp->channels, element = bytes[warp->dtype];
    const bool planar = warp->layout == LAYOUT_NCHW;
    const size_t pixels = (size_t)warp->width * (size_t)warp->height;
    if (plane >= n)
        return false;
    ret->n = n;
    ret->image = gray_image(to, warp->width, warp->height);
    if (n == 3 && plane < 0) {
        ret->image.format = PIXEL_GBRP;
        image_lay_out(&ret->image, to);
    }
    uint8_t *unseen = to + pixels; // room after a gray picture, for channels that are not shown
    for (int c = 0; c < n; c++) {
        const int colour = params->order == ORDER_BGR ? 2 - c : c;
        const struct samples samples = {
            .first = data + (planar ? (size_t)c * pixels : (size_t)c) * (size_t)element,
            .stride = (ptrdiff_t)warp->width * element * (planar ? 1 : n),
            .step = planar ? 1 : n,
            .width = warp->width,
            .height = warp->height,
            .dtype = warp->dtype,
        };
        const struct channel_levels levels = {(float)(params->std[c] / params->scale),
                                              (float)(params->mean[c] / params->scale)};
        uint8_t *shown = plane >= 0 ? (c == plane ? to : unseen)
                         : n == 3   ? ret->image.plane[component_of(PIXEL_GBRP, colour).plane].data
                                    : to;
        show_channel(shown, &samples, levels, &ret->channel[c]);
        ret->channel[c].name = n == 1 ? "gray" : names[colour];
    }
    return true;
}

// The picture is a view of the result if every kernel reads its format; yuv24 becomes planes.
static bool show_yuv(struct tensor_image *ret, uint8_t *to, const struct op *op, uint8_t *data,
                     int plane)
{
    static const char *const names[] = {"y", "u", "v"};
    struct image result, planes = op->dst;
    if (plane >= CHANNELS_MAX)
        return false;
    op_lay_out(op, &result, data);
    planes.format = PIXEL_YUV444P;
    image_lay_out(&planes, to);
    for (int c = 0; c < CHANNELS_MAX; c++) {
        const struct component at = component_of(result.format, c);
        const bool halved = c > 0 && format_is_420(result.format);
        const struct samples samples = {
            .first = result.plane[at.plane].data + at.offset,
            .stride = result.plane[at.plane].stride,
            .step = at.step,
            .width = halved ? (result.width + 1) / 2 : result.width,
            .height = halved ? (result.height + 1) / 2 : result.height,
        };
        show_channel(c == plane ? to : planes.plane[plane >= 0 ? 1 : c].data, &samples,
                     (struct channel_levels){1, 0}, &ret->channel[c]);
        ret->channel[c].name = names[c];
        if (c == plane)
            ret->image = gray_image(to, samples.width, samples.height);
    }
    if (plane < 0)
        ret->image = pixel_layout_of(result.format).uses & FORMAT_SOURCE ? result : planes;
    ret->n = CHANNELS_MAX;
    return true;
}

bool tensor_image_make(struct tensor_image *ret, uint8_t *to, const struct op *op,
                       const struct op_params *params, void *data, int plane)
{
    *ret = (struct tensor_image){0};
    return op->kind == OP_WARP ? show_warp(ret, to, &op->warp, &params->warp, data, plane)
                               : show_yuv(ret, to, op, data, plane);
}
