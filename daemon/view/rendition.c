#include "daemon/view/rendition.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/work/geometry.h"
#include "kernels/cpu/versions.h"
#include "kernels/detect_number.h"

enum {
    QUALITY = 65,        // of pictures
    TENSOR_QUALITY = 95, // of tensors, where single pixels matter
};

// --- a tensor as a picture

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

static bool show_tensor(struct tensor_image *ret, uint8_t *to, const struct result_format *format,
                        const struct warp_params *params, int plane)
{
    static const char *const names[] = {"r", "g", "b"};
    static const int bytes[] = {[DTYPE_U8] = 1, [DTYPE_S8] = 1, [DTYPE_F16] = 2, [DTYPE_F32] = 4};
    const int width = format->image.width, height = format->image.height;
    const int n = format->order == ORDER_GRAY ? 1 : 3, element = bytes[format->dtype];
    const bool planar = format->layout == LAYOUT_NCHW;
    const size_t pixels = (size_t)width * (size_t)height;
    if (plane >= n)
        return false;
    ret->n = n;
    ret->image = gray_image(to, width, height);
    if (n == 3 && plane < 0) {
        ret->image.format = PIXEL_GBRP;
        image_lay_out(&ret->image, to);
    }
    uint8_t *unseen = to + pixels; // room after a gray picture, for channels that are not shown
    for (int c = 0; c < n; c++) {
        const int colour = format->order == ORDER_BGR ? 2 - c : c;
        const struct samples samples = {
            .first = format->image.plane[0].data +
                     (planar ? (size_t)c * pixels : (size_t)c) * (size_t)element,
            .stride = (ptrdiff_t)width * element * (planar ? 1 : n),
            .step = planar ? 1 : n,
            .width = width,
            .height = height,
            .dtype = format->dtype,
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
static bool show_yuv(struct tensor_image *ret, uint8_t *to, const struct image *result, int plane)
{
    static const char *const names[] = {"y", "u", "v"};
    struct image planes = *result;
    if (plane >= CHANNELS_MAX)
        return false;
    planes.format = PIXEL_YUV444P;
    image_lay_out(&planes, to);
    for (int c = 0; c < CHANNELS_MAX; c++) {
        const struct component at = component_of(result->format, c);
        const bool halved = c > 0 && format_is_420(result->format);
        const struct samples samples = {
            .first = result->plane[at.plane].data + at.offset,
            .stride = result->plane[at.plane].stride,
            .step = at.step,
            .width = halved ? (result->width + 1) / 2 : result->width,
            .height = halved ? (result->height + 1) / 2 : result->height,
        };
        show_channel(c == plane ? to : planes.plane[plane >= 0 ? 1 : c].data, &samples,
                     (struct channel_levels){1, 0}, &ret->channel[c]);
        ret->channel[c].name = names[c];
        if (c == plane)
            ret->image = gray_image(to, samples.width, samples.height);
    }
    if (plane < 0)
        ret->image = pixel_layout_of(result->format).uses & FORMAT_SOURCE ? *result : planes;
    ret->n = CHANNELS_MAX;
    return true;
}

bool tensor_image_make(struct tensor_image *ret, uint8_t *to, const struct result_format *format,
                       const struct op_params *params, int plane)
{
    *ret = (struct tensor_image){0};
    return format->image.format == PIXEL_TENSOR ? show_tensor(ret, to, format, &params->warp, plane)
                                                : show_yuv(ret, to, &format->image, plane);
}

// --- the JPEG

void rendition_close(struct rendition *rendition)
{
    op_finish(&rendition->to_jpeg);
    jpeg_close(rendition->jpeg);
    free(rendition->levels);
    free(rendition->yuv);
    *rendition = (struct rendition){.plane = rendition->plane};
}

// Tensors keep their full chroma.
static int open_to_jpeg(struct rendition *rendition)
{
    const struct image *shown = &rendition->shown.image;
    const bool whole = source_is_rgb(shown->format) || shown->format == PIXEL_YUV444P;
    struct op_params params = {.kind = OP_YUV};
    params.yuv =
        (struct yuv_params){.format = whole ? PIXEL_YUV444P : PIXEL_YUV420P, .colour = JPEG_COLOUR};
    int rc = op_init(&rendition->to_jpeg, &params, shown);
    if (rc < 0)
        return rc;
    rendition->yuv = malloc(rendition->to_jpeg.dst_bytes);
    return rendition->yuv ? 0 : -ENOMEM;
}

static int show_result(struct rendition *rendition, const struct result_format *format,
                       const struct op_params *params, struct image *ret)
{
    const size_t pixels = (size_t)format->image.width * (size_t)format->image.height;
    if (!rendition->levels && !(rendition->levels = malloc(pixels * CHANNELS_MAX)))
        return -ENOMEM;
    if (!tensor_image_make(&rendition->shown, rendition->levels, format, params, rendition->plane))
        return -ECHRNG;
    int rc = rendition->yuv ? 0 : open_to_jpeg(rendition);
    if (rc < 0)
        return rc;
    op_lay_out(&rendition->to_jpeg, ret, rendition->yuv);
    version_find(getenv("FRAMED_CPU"))
        ->run[OP_YUV](ret, &rendition->shown.image, &rendition->to_jpeg,
                      (struct band){0, ret->height}, false);
    return 0;
}

int rendition_encode(struct rendition *rendition, const struct result_format *format,
                     const struct op_params *params, const uint8_t **file, size_t *size)
{
    struct image image = format->image;
    int rc = 0;
    if (!geometry_is_alike(&rendition->result, &image))
        rendition_close(rendition);
    rendition->result = image;
    if (params)
        rc = show_result(rendition, format, params, &image);
    if (rc == 0 && !rendition->jpeg)
        rc = jpeg_open(&rendition->jpeg, image.format, image.width, image.height,
                       params ? TENSOR_QUALITY : QUALITY);
    return rc < 0 ? rc : jpeg_encode(rendition->jpeg, &image, file, size);
}

// --- its facts

static void put_matrix(FILE *to, const char *name, const double m[6])
{
    fprintf(to, ",\"%s\":[%.9g,%.9g,%.9g,%.9g,%.9g,%.9g]", name, m[0], m[1], m[2], m[3], m[4],
            m[5]);
}

// JSON has no infinity or NaN.
static void put_number(FILE *to, const char *name, double number)
{
    if (isfinite(number))
        fprintf(to, ",\"%s\":%.7g", name, number);
    else
        fprintf(to, ",\"%s\":null", name);
}

static void put_tensor(FILE *to, const struct rendition *rendition,
                       const struct result_format *format, const struct demand_source *source)
{
    static const char *const dtypes[] = {"u8", "s8", "f16", "f32"}; // by enum dtype
    const enum pixel_format pixels = format->image.format;
    const struct rect *part = &source->shown;
    fprintf(to, ",\"dtype\":\"%s\",\"layout\":\"%s\"", dtypes[format->dtype],
            pixels != PIXEL_TENSOR          ? pixel_format_name(pixels)
            : format->layout == LAYOUT_NCHW ? "nchw"
                                            : "nhwc");
    if (part->width < source->width || part->height < source->height)
        fprintf(to, ",\"crop\":[%d,%d,%d,%d]", part->x, part->y, part->width, part->height);
    if (rendition->plane >= 0)
        fprintf(to, ",\"plane\":%d", rendition->plane);
    fputs(",\"channels\":[", to);
    for (int c = 0; c < rendition->shown.n; c++) {
        const struct channel *channel = &rendition->shown.channel[c];
        fprintf(to, "%s{\"name\":\"%s\"", c ? "," : "", channel->name);
        put_number(to, "min", channel->min);
        put_number(to, "mean", channel->mean);
        put_number(to, "max", channel->max);
        fputs("}", to);
    }
    fputs("]", to);
}

void rendition_describe(const struct rendition *rendition, const struct result *result,
                        const struct demand_source *source, char to[RENDITION_FACTS_MAX])
{
    const struct image *image = &result->format.image;
    *to = 0;
    FILE *file = fmemopen(to, RENDITION_FACTS_MAX, "w");
    if (!file)
        return;
    fprintf(file, "\"width\":%d,\"height\":%d,\"source\":[%d,%d]", image->width, image->height,
            source->width, source->height);
    put_matrix(file, "src_to_dst", result->item[0].src_to_dst);
    put_matrix(file, "dst_to_src", result->item[0].dst_to_src);
    if (rendition->levels)
        put_tensor(file, rendition, &result->format, source);
    fclose(file);
}
