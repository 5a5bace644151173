#include "daemon/view/rendition.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/work/geometry.h"
#include "kernels/cpu/versions.h"

enum {
    QUALITY = 65,        // of pictures
    TENSOR_QUALITY = 95, // of tensors, where single pixels matter
};

void rendition_close(struct rendition *rendition)
{
    op_finish(&rendition->op);
    op_finish(&rendition->to_jpeg);
    jpeg_close(rendition->jpeg);
    free(rendition->levels);
    free(rendition->yuv);
    *rendition = (struct rendition){.plane = rendition->plane};
}

// Prepares for results of pictures like `source`.
static int open_rendition(struct rendition *rendition, const struct subscription *subscription,
                          const struct image *source)
{
    if (geometry_is_alike(&rendition->source, source))
        return 0;
    rendition_close(rendition);
    int rc = geometry_first(&rendition->params, subscription, source);
    if (rc == 0 && (rc = op_init(&rendition->op, &rendition->params, source)) < 0)
        rendition->op = (struct op){0};
    if (rc < 0)
        return rc;
    if (subscription->output->demand->of &&
        !(rendition->levels = malloc(tensor_image_bytes(&rendition->op))))
        return -ENOMEM;
    rendition->source = *source;
    return 0;
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

// Writes the part of the source that the result shows, unless it is all of it.
static void put_crop(FILE *to, const struct rendition *rendition)
{
    const struct op *op = &rendition->op;
    const struct warp *warp = op->kind == OP_WARP ? &op->warp : op->yuv.warps;
    const struct image *source = &rendition->source;
    if (warp && (warp->x1 - warp->x0 < source->width || warp->y1 - warp->y0 < source->height))
        fprintf(to, ",\"crop\":[%d,%d,%d,%d]", warp->x0, warp->y0, warp->x1 - warp->x0,
                warp->y1 - warp->y0);
}

static void put_tensor(FILE *to, const struct rendition *rendition)
{
    static const char *const dtypes[] = {"u8", "s8", "f16", "f32"}; // by enum dtype
    const struct op *op = &rendition->op;
    const struct tensor_image *shown = &rendition->shown;
    const bool warp = op->kind == OP_WARP;
    fprintf(to, ",\"dtype\":\"%s\",\"layout\":\"%s\"", warp ? dtypes[op->warp.dtype] : "u8",
            !warp                            ? pixel_format_name(op->dst.format)
            : op->warp.layout == LAYOUT_NCHW ? "nchw"
                                             : "nhwc");
    put_crop(to, rendition);
    if (rendition->plane >= 0)
        fprintf(to, ",\"plane\":%d", rendition->plane);
    fputs(",\"channels\":[", to);
    for (int c = 0; c < shown->n; c++) {
        const struct channel *channel = &shown->channel[c];
        fprintf(to, "%s{\"name\":\"%s\"", c ? "," : "", channel->name);
        put_number(to, "min", channel->min);
        put_number(to, "mean", channel->mean);
        put_number(to, "max", channel->max);
        fputs("}", to);
    }
    fputs("]", to);
}

// A picture's facts change only with its source.
static void describe(struct rendition *rendition)
{
    const struct op *op = &rendition->op;
    if (*rendition->facts && !rendition->levels)
        return;
    FILE *to = fmemopen(rendition->facts, sizeof rendition->facts, "w");
    if (!to)
        return;
    fprintf(to, "\"width\":%d,\"height\":%d,\"source\":[%d,%d]", op->dst.width, op->dst.height,
            rendition->source.width, rendition->source.height);
    put_matrix(to, "src_to_dst", op->src_to_dst);
    put_matrix(to, "dst_to_src", op->dst_to_src);
    if (rendition->levels)
        put_tensor(to, rendition);
    fclose(to);
}

// --- the JPEG

static void run_op(const struct op *op, void *data, const struct image *source)
{
    struct image result;
    op_lay_out(op, &result, data);
    version_find(getenv("FRAMED_CPU"))
        ->run[op->kind](&result, source, op, (struct band){0, result.height}, false);
}

// Tensors keep their full chroma.
static int open_to_jpeg(struct rendition *rendition)
{
    const struct image *shown = &rendition->shown.image;
    const bool whole = source_is_rgb(shown->format) || shown->format == PIXEL_YUV444P;
    struct op_params params = {.kind = OP_YUV};
    params.yuv =
        (struct yuv_params){.format = whole ? PIXEL_YUV444P : PIXEL_YUV420P, .colour = JPEG_COLOUR};
    if (rendition->yuv)
        return 0;
    int rc = op_init(&rendition->to_jpeg, &params, shown);
    if (rc < 0)
        return rc;
    rendition->yuv = malloc(rendition->to_jpeg.dst_bytes);
    return rendition->yuv ? 0 : -ENOMEM;
}

static int show_tensor(struct rendition *rendition, void *data, struct image *ret)
{
    if (!tensor_image_make(&rendition->shown, rendition->levels, &rendition->op, &rendition->params,
                           data, rendition->plane))
        return -ECHRNG;
    int rc = open_to_jpeg(rendition);
    if (rc < 0)
        return rc;
    run_op(&rendition->to_jpeg, rendition->yuv, &rendition->shown.image);
    op_lay_out(&rendition->to_jpeg, ret, rendition->yuv);
    return 0;
}

int rendition_encode(struct rendition *rendition, const struct subscription *subscription,
                     const struct image *source, void *data, const uint8_t **file, size_t *size)
{
    struct image image;
    int rc = open_rendition(rendition, subscription, source);
    if (rc == 0 && rendition->levels)
        rc = show_tensor(rendition, data, &image);
    else if (rc == 0)
        op_lay_out(&rendition->op, &image, data);
    if (rc == 0 && !rendition->jpeg)
        rc = jpeg_open(&rendition->jpeg, image.format, image.width, image.height,
                       rendition->levels ? TENSOR_QUALITY : QUALITY);
    if (rc == 0)
        rc = jpeg_encode(rendition->jpeg, &image, file, size);
    if (rc == 0)
        describe(rendition);
    return rc;
}
