#include "config/config.h"

#include <stdlib.h>
#include <string.h>

#include "config/object.h"

void config_free(struct config *config)
{
    if (!config)
        return;
    object_free(&root_table, config);
    free(config);
}

static double channel(const struct channels *channels, int i)
{
    return channels->v[channels->n == 3 ? i : 0];
}

static void warp_op(const struct output_config *output, struct warp_params *ret)
{
    *ret = (struct warp_params){
        .width = output->size.width,
        .height = output->size.height,
        .fit = output->fit,
        .crop = output->crop.rect,
        .rotate = output->rotate,
        .flip = output->flip,
        .has_affine = output->affine.set,
        .order = output->tensor.order,
        .layout = output->tensor.layout,
        .dtype = output->tensor.dtype,
        .scale = output->tensor.scale.value,
        .colour = {.matrix = output->colour.matrix, .range = output->colour.range},
    };
    memcpy(ret->affine, output->affine.m, sizeof ret->affine);
    for (int i = 0; i < 3; i++) {
        ret->fill[i] = output->fill.v[output->fill.n == 3 ? i : 0];
        ret->mean[i] = channel(&output->tensor.mean, i);
        ret->std[i] = channel(&output->tensor.std, i);
    }
}

void output_config_op(const struct output_config *output, struct op_params *ret)
{
    *ret = (struct op_params){.kind = output->kernel};
    if (output->kernel == OP_WARP) {
        warp_op(output, &ret->warp);
    } else {
        ret->yuv.format = output->format;
        ret->yuv.colour =
            (struct colour){.matrix = output->colour.matrix, .range = output->colour.range};
    }
}
