// Detection for a program: takes views and headers, returns lists of boxes.
#include "client/gpu.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/framed.h"
#include "client/reader.h"
#include "kernels/cpu/versions.h"

// --- the model

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

// Returns 0 or -EINVAL; `ret_why`: the mistake, and what is allowed.
static int model_read(struct detect *detect, const struct framed_model *model, const char **ret_why)
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

// --- the detector

enum { ALIGN = 64 };

struct framed_detector {
    struct detect detect;
    detect_fn *run;
    int pictures;
    struct gpu_detector *gpu;      // NULL: outputs are in host memory
    struct detect_result *results; // one per picture of a call, in host memory; NULL: the GPU's
    void *workspace;               // in host memory; NULL: the GPU's
    struct detect_input *inputs;   // of a call's non-empty pictures,
    int *places;                   // and the index of each among all pictures
    struct framed_detection *detections; // max_det per picture
    uint32_t *anchors;
    float *angles;
    char error[160];
};

static int fail(struct framed_detector *detector, int error, const char *why)
{
    snprintf(detector->error, sizeof detector->error, "%s", why);
    errno = error;
    return -1;
}

// --- open and close

static void *aligned(size_t n, size_t bytes)
{
    if (bytes && n > SIZE_MAX / 2 / bytes)
        return NULL;
    return aligned_alloc(ALIGN, (n * bytes + ALIGN) / ALIGN * ALIGN);
}

static int allocate(struct framed_detector *detector)
{
    const struct detect *detect = &detector->detect;
    const size_t pictures = (size_t)detector->pictures;
    const size_t boxes = pictures * (size_t)detect->params.max_det;
    detector->inputs = aligned(pictures, sizeof *detector->inputs);
    detector->places = aligned(pictures, sizeof *detector->places);
    detector->detections = aligned(boxes, sizeof *detector->detections);
    detector->anchors = aligned(boxes, sizeof *detector->anchors);
    detector->angles = aligned(boxes, sizeof *detector->angles);
    bool is_there = detector->inputs && detector->places && detector->detections &&
                    detector->anchors && detector->angles;
    if (!detector->gpu) {
        detector->results = aligned(pictures, detect_result_bytes(detect));
        detector->workspace = aligned(1, detect_workspace_bytes(detect));
        is_there = is_there && detector->results && detector->workspace;
    }
    return is_there ? 0 : -ENOMEM;
}

static int open_gpu(struct framed_detector *detector, int device, const char **ret_why)
{
#ifdef FRAMED_CUDA
    return gpu_detector_open(&detector->gpu, &detector->detect, detector->pictures, device,
                             ret_why);
#else
    (void)detector;
    (void)device;
    *ret_why = "this libframed was built without CUDA: memory: FRAMED_RING_HOST alone";
    return -ENOTSUP;
#endif
}

struct framed_detector *framed_detector_open(const struct framed_model *model, const char **ret_why)
{
    const char *why = NULL;
    struct framed_detector *detector = calloc(1, sizeof *detector);
    int rc = detector ? model_read(&detector->detect, model, &why) : -ENOMEM;
    if (rc == 0) {
        detector->run = detect_best();
        detector->pictures = model->pictures ? model->pictures : 1;
        if (model->memory == FRAMED_RING_CUDA)
            rc = open_gpu(detector, model->device, &why);
    }
    if (rc == 0)
        rc = allocate(detector);
    if (ret_why)
        *ret_why = rc == 0 ? NULL : why ? why : strerror(-rc);
    if (rc == 0)
        return detector;
    framed_detector_close(detector);
    errno = -rc;
    return NULL;
}

void framed_detector_close(struct framed_detector *detector)
{
    if (!detector)
        return;
#ifdef FRAMED_CUDA
    gpu_detector_close(detector->gpu);
#endif
    free(detector->angles);
    free(detector->anchors);
    free(detector->detections);
    free(detector->places);
    free(detector->inputs);
    free(detector->workspace);
    free(detector->results);
    free(detector);
}

const char *framed_detector_error(const struct framed_detector *detector)
{
    return detector->error;
}

// --- pictures in

// Returns 0, or -1 and sets errno if a tensor is missing or misaligned.
static int check_output(struct framed_detector *detector, const struct framed_output *output)
{
    for (int i = 0; i < DETECT_TENSORS; i++) {
        if (detect_tensor_bytes(&detector->detect, i) == 0)
            continue;
        if (!output->tensor[i])
            return fail(detector, EINVAL, "the head has a tensor that the output lacks");
        const enum detect_dtype dtype = detector->detect.params.format[i].dtype;
        if ((uintptr_t)output->tensor[i] % detect_dtype_bytes(dtype) != 0)
            return fail(detector, EINVAL, "a tensor does not lie on a multiple of its element");
    }
    return 0;
}

static int32_t side_of(uint32_t side)
{
    return side > INT_MAX ? INT_MAX : (int32_t)side;
}

// Fills in picture i of the output: its tensors and matrix.
static void take_picture(struct detect_input *input, const struct detect *detect,
                         const struct framed_output *output, const struct framed_header *header,
                         int i)
{
    for (int t = 0; t < DETECT_TENSORS; t++) {
        const size_t bytes = detect_tensor_bytes(detect, t);
        input->tensor[t] = bytes ? (const uint8_t *)output->tensor[t] + (size_t)i * bytes : NULL;
    }
    for (int m = 0; m < 6; m++)
        input->dst_to_src[m] = (double)header->dst_to_src[m];
    input->width = side_of(header->source_width);
    input->height = side_of(header->source_height);
}

// Fills inputs from the pictures that are not empty. Returns how many.
static int take_pictures(struct framed_detector *detector, const struct framed_output *output,
                         const struct framed_header *headers, size_t stride, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        const struct framed_header *header =
            (const void *)((const uint8_t *)headers + (size_t)i * stride);
        if (header->flags & FRAMED_FLAG_EMPTY)
            continue;
        take_picture(&detector->inputs[count], &detector->detect, output, header, i);
        detector->places[count++] = i;
    }
    return count;
}

// Returns the results of the first `n` inputs, one after the other, or NULL and sets errno.
static const struct detect_result *run(struct framed_detector *detector, int n, void *stream)
{
#ifdef FRAMED_CUDA
    if (detector->gpu) {
        const struct detect_result *results;
        const char *why;
        const int rc = gpu_detector_run(detector->gpu, &detector->detect, detector->inputs, n,
                                        stream, &results, &why);
        if (rc == 0)
            return results;
        fail(detector, -rc, why);
        return NULL;
    }
#else
    (void)stream;
#endif
    const size_t bytes = detect_result_bytes(&detector->detect);
    for (int i = 0; i < n; i++)
        detector->run(&detector->detect, &detector->inputs[i],
                      (struct detect_result *)((uint8_t *)detector->results + (size_t)i * bytes),
                      detector->workspace);
    return detector->results;
}

// --- boxes out

static void copy_detections(struct framed_detection *to, const struct detection *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = (struct framed_detection){.x1 = from[i].x1,
                                          .y1 = from[i].y1,
                                          .x2 = from[i].x2,
                                          .y2 = from[i].y2,
                                          .score = from[i].score,
                                          .class_id = (uint16_t)from[i].label};
}

// Copies a result to place i of the detector's own arrays.
static void hand_out(const struct framed_detector *detector, const struct detect_result *result,
                     int i, struct framed_found *found)
{
    const struct detect_params *params = &detector->detect.params;
    const size_t first = (size_t)i * (size_t)params->max_det;
    const struct detection *from = detect_found(result);
    const float *extras = detect_extras(&detector->detect, result);
    const int points = params->keypoints * params->keypoint_columns;
    copy_detections(detector->detections + first, from, result->count);
    for (uint32_t k = 0; k < result->count; k++) {
        detector->anchors[first + k] = from[k].anchor;
        detector->angles[first + k] = from[k].angle;
    }
    *found = (struct framed_found){
        .count = result->count,
        .flags = result->flags,
        .candidates = result->candidates,
        .dropped = result->dropped,
        .detections = detector->detections + first,
        .anchors = detector->anchors + first,
        .angles = params->rotated ? detector->angles + first : NULL,
        .quads = params->quads ? detect_quads(&detector->detect, result) : NULL,
        .keypoints = points ? extras : NULL,
        .coefficients = params->coefficients ? extras + points : NULL,
        .extra_stride = (uint64_t)detector->detect.extra,
    };
}

int framed_detect_headers(struct framed_detector *detector, const struct framed_output *output,
                          const struct framed_header *headers, size_t stride,
                          struct framed_found found[], int n)
{
    if (n < 0 || n > detector->pictures)
        return fail(detector, EINVAL, "more pictures than model.pictures");
    if (check_output(detector, output) < 0)
        return -1;
    const int count = take_pictures(detector, output, headers, stride, n);
    const struct detect_result *results = run(detector, count, output->stream);
    if (!results)
        return -1;
    for (int i = 0; i < n; i++)
        found[i] = (struct framed_found){.detections = detector->detections};
    for (int i = 0; i < count; i++)
        hand_out(detector,
                 (const struct detect_result *)((const uint8_t *)results +
                                                (size_t)i * detect_result_bytes(&detector->detect)),
                 i, &found[detector->places[i]]);
    return n;
}

// Returns 0, or -1 and sets errno: no frame in the view, a torn one, or not the input's size.
static int check_view(struct framed_detector *detector, const struct framed_view *view)
{
    const struct detect_params *params = &detector->detect.params;
    if (!view->data)
        return fail(detector, EINVAL, "there is no frame in the view");
    if (view->state && !ring_has(view->state, view->ticket))
        return fail(detector, ESTALE, "the frame was taken away before it was read");
    if (view->header.width == (uint32_t)params->width &&
        view->header.height == (uint32_t)params->height)
        return 0;
    snprintf(detector->error, sizeof detector->error,
             "the frame has %u x %u pixels, the model's input %d x %d", view->header.width,
             view->header.height, params->width, params->height);
    errno = EINVAL;
    return -1;
}

int framed_detect_view(struct framed_detector *detector, const struct framed_output *output,
                       const struct framed_view *view, struct framed_found found[], int n)
{
    if (check_view(detector, view) < 0)
        return -1;
    if (view->batch.count == 0)
        return n < 1 ? fail(detector, EINVAL, "there is no list to write to")
                     : framed_detect_headers(detector, output, &view->header, 0, found, 1);
    if (n < 0 || view->batch.count > (uint32_t)n)
        return fail(detector, EINVAL, "more elements than there are lists for");
    return framed_detect_headers(detector, output, &view->elements[0].header,
                                 sizeof view->elements[0], found, (int)view->batch.count);
}

int framed_detect(struct framed_detector *detector, const void *tensor,
                  const struct framed_view *view, struct framed_detection *found, int max)
{
    const struct framed_output output = {.tensor = {tensor}};
    if (check_view(detector, view) < 0)
        return -1;
    if (view->batch.count > 0)
        return fail(detector, EINVAL, "a batch: framed_detect_view");
    if (check_output(detector, &output) < 0)
        return -1;
    const int pictures = take_pictures(detector, &output, &view->header, 0, 1);
    const struct detect_result *result = run(detector, pictures, NULL);
    if (!result)
        return -1;
    int count = pictures > 0 ? (int)result->count : 0;
    count = count < max ? count : max;
    count = count > 0 ? count : 0;
    copy_detections(found, detect_found(result), (uint32_t)count);
    return count;
}
