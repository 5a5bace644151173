#include "client/model.h"

#include <errno.h>
#include <string.h>

// The public enums have the same values as the kernels' enums.
_Static_assert((int)FRAMED_HEAD_TFLITE + 1 == DETECT_HEADS, "heads");
_Static_assert((int)FRAMED_TENSORS == DETECT_TENSORS, "tensors");
_Static_assert((int)FRAMED_S64 + 1 == DETECT_DTYPES, "dtypes");
_Static_assert((int)FRAMED_SOFTMAX == DETECT_SOFTMAX, "activations");
_Static_assert((int)FRAMED_KEEP == DETECT_KEEP, "suppressions");
_Static_assert((int)FRAMED_FOUND_CUT == DETECT_CUT, "flags");

enum { PICTURES_MAX = 4096 };

void framed_model_init(struct framed_model *model, uint32_t head)
{
    const bool is_known = head < DETECT_HEADS;
    const struct detect_params params = detect_defaults(is_known ? head : DETECT_YOLOV8);
    *model = (struct framed_model){
        .bytes = sizeof *model,
        .head = head,
        .activation = params.activation,
        .normalised = params.normalised,
        .clip = 1,
        .conf = params.conf,
        .iou = params.iou,
        .suppression = params.suppression,
        .soft_floor = params.soft_floor,
    };
    for (int i = 0; i < FRAMED_TENSORS; i++)
        model->format[i] = (struct framed_format){.dtype = params.format[i].dtype, .scale = 1};
}

static const char *mistake_of(const struct framed_model *model)
{
    const uint8_t switches[] = {model->planes,      model->normalised, model->rotated,
                                model->multi_label, model->agnostic,   model->compat_ultralytics,
                                model->clip,        model->quads};
    if (model->bytes != sizeof *model)
        return "bytes: those of a struct framed_model that framed_model_init has filled";
    for (size_t i = 0; i < sizeof switches; i++)
        if (switches[i] > 1)
            return "planes, normalised, rotated and the other switches: 0 or 1";
    for (size_t i = 0; i < sizeof model->reserved / sizeof model->reserved[0]; i++)
        if (model->reserved[i])
            return "reserved: 0";
    if (model->head >= DETECT_HEADS || model->activation > DETECT_SOFTMAX ||
        model->suppression > DETECT_KEEP || model->memory > FRAMED_RING_CUDA)
        return "head, activation, suppression and memory: those that there are";
    if (model->pictures < 0 || model->pictures > PICTURES_MAX)
        return "pictures: at most 4096";
    return NULL;
}

int model_read(struct detect *detect, const struct framed_model *model, const char **ret_why)
{
    *ret_why = mistake_of(model);
    if (*ret_why)
        return -EINVAL;
    struct detect_params params = {
        .bytes = sizeof params,
        .head = model->head,
        .width = model->width,
        .height = model->height,
        .anchors = model->anchors,
        .classes = model->classes,
        .planes = model->planes,
        .normalised = model->normalised,
        .rotated = model->rotated,
        .keypoints = model->keypoints,
        .keypoint_columns = model->keypoint_columns,
        .coefficients = model->coefficients,
        .activation = model->activation,
        .conf = model->conf,
        .class_conf = model->class_conf,
        .class_list = model->class_list,
        .multi_label = model->multi_label,
        .candidates = model->candidates,
        .width_min = model->width_min,
        .width_max = model->width_max,
        .height_min = model->height_min,
        .height_max = model->height_max,
        .suppression = model->suppression,
        .iou = model->iou,
        .soft_floor = model->soft_floor,
        .agnostic = model->agnostic,
        .compat_ultralytics = model->compat_ultralytics,
        .offset = model->offset,
        .max_det = model->max_det,
        .clip = model->clip,
        .quads = model->quads,
    };
    memcpy(params.strides, model->strides, sizeof params.strides);
    for (int i = 0; i < DETECT_TENSORS; i++)
        params.format[i] = (struct detect_format){.dtype = model->format[i].dtype,
                                                  .scale = model->format[i].scale,
                                                  .zero = model->format[i].zero};
    return detect_init(detect, &params, ret_why);
}
