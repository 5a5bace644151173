#include "config/config.h"

#include <string.h>

static double channel(const struct channels *channels, int i)
{
    return channels->v[channels->n == 3 ? i : 0];
}

static struct warp_params warp_of(const struct output_config *output)
{
    struct warp_params ret = {
        .width = output->size.width,
        .height = output->size.height,
        .fit = output->fit,
        .shrink_only = !output->scaleup,
        .stride = output->stride,
        .filter = output->filter,
        .edge = output->edge,
        .fill_mean = output->fill.mean,
        .crop = output->roi.chosen.n > 0 ? output->roi.chosen.list[0].rect : output->crop.rect,
        .rotate = output->rotate,
        .flip = output->flip,
        .has_affine = output->affine.set,
        .order = output->tensor.order,
        .layout = output->tensor.layout,
        .dtype = output->tensor.dtype,
        .scale = output->tensor.scale.value,
        .colour = {.matrix = output->colour.matrix, .range = output->colour.range},
        .lut = output->lut.lut,
    };
    memcpy(ret.affine, output->affine.m, sizeof ret.affine);
    for (int i = 0; i < 3; i++) {
        ret.fill[i] = output->fill.v[output->fill.n == 3 ? i : 0];
        ret.mean[i] = channel(&output->tensor.mean, i);
        ret.std[i] = channel(&output->tensor.std, i);
    }
    return ret;
}

static void warp_params_of(const struct output_config *output, struct op_params *op)
{
    op->warp = warp_of(output);
}

static void yuv_params_of(const struct output_config *output, struct op_params *op)
{
    op->yuv.format = output->format;
    op->yuv.resized = output->resized;
    op->yuv.geometry = warp_of(output);
    op->yuv.colour =
        (struct colour){.matrix = output->colour.matrix, .range = output->colour.range};
}

static bool stats_fit(const struct output_config *output, enum protocol protocol)
{
    (void)output;
    return protocol == PROTOCOL_LINES;
}

static bool copy_fits(const struct output_config *output, enum protocol protocol)
{
    (void)output;
    return protocol == PROTOCOL_MP4 || protocol == PROTOCOL_MKV;
}

static bool warp_fits(const struct output_config *output, enum protocol protocol)
{
    if (copy_fits(output, protocol))
        return false;
    return protocol != PROTOCOL_Y4M ||
           (output->tensor.order == ORDER_GRAY && output->tensor.dtype == DTYPE_U8);
}

static bool yuv_fits(const struct output_config *output, enum protocol protocol)
{
    switch (protocol) {
    case PROTOCOL_NPY: // one array: planes of one size, or components side by side
        return output->format == PIXEL_YUV444P || output->format == PIXEL_YUV24;
    case PROTOCOL_Y4M:
        return output->format == PIXEL_YUV420P || output->format == PIXEL_YUV444P;
    default:
        return !copy_fits(output, protocol);
    }
}

static const struct {
    void (*params)(const struct output_config *, struct op_params *ret);
    bool (*fits)(const struct output_config *, enum protocol);
} ops[] = {
    [KERNEL_WARP] = {warp_params_of, warp_fits},
    [KERNEL_YUV] = {yuv_params_of, yuv_fits},
    [KERNEL_COPY] = {NULL, copy_fits},
    [KERNEL_STATS] = {NULL, stats_fit},
};

void output_config_op(const struct output_config *output, struct op_params *ret)
{
    *ret = (struct op_params){.kind = (enum op_kind)output->kernel};
    ops[output->kernel].params(output, ret);
}

bool output_config_fits(const struct output_config *output, enum protocol protocol)
{
    return ops[output->kernel].fits(output, protocol);
}

bool output_config_has_op(const struct output_config *output)
{
    return ops[output->kernel].params != NULL;
}

bool camera_config_analyses(const struct camera_config *camera)
{
    bool wanted = camera->stats;
    for (int i = 0; i < camera->n_outputs; i++)
        wanted |= output_config_has_gate(&camera->outputs[i]) ||
                  camera->outputs[i].kernel == KERNEL_STATS;
    return wanted;
}

bool output_config_has_gate(const struct output_config *output)
{
    return output->gate.motion;
}
