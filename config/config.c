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

struct camera_config *config_copy_camera(const struct camera_config *camera)
{
    struct camera_config *copy = object_copy(&camera_table, camera);
    if (copy)
        copy->stream = camera->stream;
    return copy;
}

struct output_config *config_copy_output(const struct output_config *output)
{
    return object_copy(&output_table, output);
}

static void free_copy(const struct table *table, void *object)
{
    if (object)
        object_free(table, object);
    free(object);
}

void config_free_camera(struct camera_config *camera)
{
    free_copy(&camera_table, camera);
}

void config_free_output(struct output_config *output)
{
    free_copy(&output_table, output);
}

bool config_same_camera(const struct camera_config *a, const struct camera_config *b)
{
    return object_equal(&camera_table, a, b);
}

bool config_same_output(const struct output_config *a, const struct output_config *b)
{
    return object_equal(&output_table, a, b);
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
