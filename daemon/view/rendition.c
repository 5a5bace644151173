#include "daemon/view/rendition.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/work/geometry.h"
#include "kernels/cpu/versions.h"
#include "kernels/detect_number.h"

enum {
    QUALITY = 65,        // of pictures
    TENSOR_QUALITY = 95, // of tensors, where single pixels matter
    FINE = 3,            // of 3x3 pixels, bilinear reads 2x2
    DEPTH = 1,           // jobs at once
    DEADLINE_S = 1,      // of a job
};

// The device's work on one picture, which may outlast every wait for it.
struct rendition_job {
    struct job job;
    struct job_result result;
    struct frame frame; // while it is busy
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool busy;
    int status; // of the last job
};

// --- the ops

// The picture to show: upright, in the colours of JPEG.
static struct op_params picture_params(const struct rendition_params *wanted,
                                       const struct image *source)
{
    const bool turned = source->orientation & ORIENTATION_QUARTER;
    const int shown_width = turned ? source->height : source->width;
    const int shown_height = turned ? source->width : source->height;
    const int width = wanted->width < shown_width ? wanted->width : shown_width;
    const int height = (int)lround((double)width * shown_height / shown_width);
    struct op_params params = {.kind = OP_YUV};
    params.yuv =
        (struct yuv_params){.format = PIXEL_YUV420P, .colour = JPEG_COLOUR, .resized = true};
    params.yuv.geometry = (struct warp_params){
        .width = width,
        .height = height > 0 ? height : 1,
        .fit = FIT_STRETCH,
        .filter = wanted->fine && width * FINE < shown_width ? FILTER_AREA : FILTER_BILINEAR,
        .scale = 1,
        .std = {1, 1, 1},
    };
    return params;
}

static bool is_same(const struct rendition_params *a, const struct rendition_params *b)
{
    return a->tensor == b->tensor && a->plane == b->plane && a->width == b->width &&
           a->fine == b->fine && memcmp(&a->op, &b->op, sizeof a->op) == 0;
}

// Runs the op on a picture on the host.
static void run_op(const struct op *op, void *data, const struct image *source)
{
    struct image result;
    op_lay_out(op, &result, data);
    version_find(getenv("FRAMED_CPU"))
        ->run[op->kind](&result, source, op, (struct band){0, result.height}, false);
}

static struct rendition_job *open_job(void)
{
    struct rendition_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    pthread_mutex_init(&job->lock, NULL);
    condition_init(&job->done);
    return job;
}

static void close_job(struct rendition_job *job)
{
    if (!job)
        return;
    pthread_cond_destroy(&job->done);
    pthread_mutex_destroy(&job->lock);
    free(job);
}

// Opens a plan for one picture at a time, in memory that cameras can do without.
static int open_plan(struct rendition *rendition, const struct device_lease *lease, char *why,
                     size_t size)
{
    const struct backend_driver *driver = lease->driver;
    const struct image *source = &rendition->source;
    const struct op *ops[] = {&rendition->op};
    const size_t bytes = driver->plan_need(source, ops, 1, DEPTH).device;
    size_t left;
    int rc = device_reserve_spare(lease, bytes, &left);
    if (rc < 0) {
        snprintf(why, size, "needs %zu KiB of device memory, %zu KiB are left for previews",
                 (bytes + 1023) >> 10, left >> 10);
        return rc;
    }
    rendition->reserved = bytes;
    rendition->job = open_job();
    if (!rendition->job)
        return -ENOMEM;
    return driver->plan_open(lease->backend, &rendition->plan, source, ops, 1, DEPTH);
}

// Counts all buffers of the rendition; for a tensor also the ones of its picture and of the JPEG's.
static int take_memory(struct rendition *rendition, char *why, size_t size)
{
    const bool tensor = rendition->params.tensor;
    const size_t bytes =
        rendition->op.dst_bytes + (tensor ? 2 * tensor_image_bytes(&rendition->op) : 0);
    const size_t before = atomic_fetch_add(rendition->taken, bytes);
    rendition->bytes = bytes;
    if (before + bytes <= RENDITIONS_BYTES_MAX)
        return 0;
    snprintf(why, size,
             "to be shown it takes %zu MiB of memory: previews may have %d MiB together, and the "
             "others have %zu MiB",
             bytes >> 20, RENDITIONS_BYTES_MAX >> 20, before >> 20);
    return -E2BIG;
}

static int open_op(struct rendition *rendition, const struct device_lease *lease, char *why,
                   size_t size)
{
    const struct image *source = &rendition->source;
    const struct rendition_params *params = &rendition->params;
    const struct op_params op = params->tensor ? params->op : picture_params(params, source);
    int rc = op_init(&rendition->op, &op, source);
    if (rc < 0) {
        rendition->op = (struct op){0};
        return rc;
    }
    if (rendition->op.dst.width > TENSOR_SIDE_MAX || rendition->op.dst.height > TENSOR_SIDE_MAX) {
        snprintf(why, size, "its results are larger than %dx%d, which are not shown",
                 TENSOR_SIDE_MAX, TENSOR_SIDE_MAX);
        return -E2BIG;
    }
    if ((rc = take_memory(rendition, why, size)) < 0)
        return rc;
    rendition->data = malloc(rendition->op.dst_bytes);
    if (!rendition->data)
        return -ENOMEM;
    if (params->tensor && !(rendition->levels = malloc(tensor_image_bytes(&rendition->op))))
        return -ENOMEM;
    return source->memory == MEMORY_CUDA ? open_plan(rendition, lease, why, size) : 0;
}

void rendition_close(struct rendition *rendition, const struct device_lease *lease)
{
    if (rendition->plan)
        lease->driver->plan_close(rendition->plan);
    close_job(rendition->job);
    if (rendition->reserved)
        device_unreserve(lease, rendition->reserved);
    op_finish(&rendition->op);
    op_finish(&rendition->to_jpeg);
    jpeg_close(rendition->jpeg);
    free(rendition->data);
    free(rendition->levels);
    free(rendition->yuv);
    atomic_fetch_sub(rendition->taken, rendition->bytes);
    *rendition = (struct rendition){.taken = rendition->taken};
}

// --- a picture

// Backend thread.
static void job_done(struct job *done, int status)
{
    struct rendition_job *job = done->opaque;
    frame_release(&job->frame);
    pthread_mutex_lock(&job->lock);
    job->busy = false;
    job->status = status;
    pthread_cond_signal(&job->done);
    pthread_mutex_unlock(&job->lock);
}

bool rendition_is_busy(const struct rendition *rendition)
{
    struct rendition_job *job = rendition->job;
    if (!job)
        return false;
    pthread_mutex_lock(&job->lock);
    const bool busy = job->busy;
    pthread_mutex_unlock(&job->lock);
    return busy;
}

static int wait_for_job(struct rendition_job *job)
{
    const int64_t until_ns = monotonic_ns() + DEADLINE_S * INT64_C(1000000000);
    int rc = 0;
    pthread_mutex_lock(&job->lock);
    while (job->busy && rc == 0)
        rc = condition_wait(&job->done, &job->lock, until_ns);
    if (!job->busy)
        rc = job->status;
    pthread_mutex_unlock(&job->lock);
    return rc;
}

static int run_plan(struct rendition *rendition, struct frame *frame,
                    const struct device_lease *lease)
{
    struct rendition_job *job = rendition->job;
    int rc = frame_share(frame, &job->frame);
    if (rc < 0)
        return rc;
    job->result = (struct job_result){.data = rendition->data, .memory = MEMORY_HOST};
    job->job = (struct job){
        .src = frame->image, .results = &job->result, .n = 1, .done = job_done, .opaque = job};
    job->busy = true;
    rc = lease->driver->submit(rendition->plan, &job->job);
    if (rc == 0)
        return wait_for_job(job);
    job->busy = false;
    frame_release(&job->frame);
    return rc;
}

int rendition_read(struct rendition *rendition, const struct rendition_params *params,
                   struct frame *frame, const struct device_lease *lease, char *why, size_t size)
{
    const struct image *source = &frame->image;
    int rc = rendition_is_busy(rendition) ? -ETIMEDOUT : 0;
    *why = 0;
    if (rc == 0 &&
        (!is_same(&rendition->params, params) || !geometry_is_alike(&rendition->source, source))) {
        rendition_close(rendition, lease);
        rendition->params = *params;
        rendition->source = *source;
        rc = open_op(rendition, lease, why, size);
    }
    if (rc == 0 && rendition->plan)
        rc = run_plan(rendition, frame, lease);
    else if (rc == 0)
        run_op(&rendition->op, rendition->data, source);
    if (rc == 0)
        return 0;
    if (rc == -ETIMEDOUT) {
        snprintf(why, size, "the device takes more than %d s for a picture", DEADLINE_S);
        return rc;
    }
    if (!*why)
        snprintf(why, size, "cannot be made from %s %dx%d: %s", pixel_format_name(source->format),
                 source->width, source->height, strerror(-rc));
    rendition_close(rendition, lease);
    return rc;
}

// --- the JPEG

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

static int show_tensor(struct rendition *rendition, struct image *ret)
{
    const struct rendition_params *params = &rendition->params;
    if (!tensor_image_make(&rendition->shown, rendition->levels, &rendition->op, &params->op,
                           rendition->data, params->plane))
        return -ECHRNG;
    int rc = open_to_jpeg(rendition);
    if (rc < 0)
        return rc;
    run_op(&rendition->to_jpeg, rendition->yuv, &rendition->shown.image);
    op_lay_out(&rendition->to_jpeg, ret, rendition->yuv);
    return 0;
}

int rendition_encode(struct rendition *rendition, const uint8_t **file, size_t *file_size,
                     char *why, size_t size)
{
    const bool tensor = rendition->params.tensor;
    struct image image;
    int rc = 0;
    if (tensor)
        rc = show_tensor(rendition, &image);
    else
        op_lay_out(&rendition->op, &image, rendition->data);
    if (rc == 0 && !rendition->jpeg)
        rc = jpeg_open(&rendition->jpeg, image.format, image.width, image.height,
                       tensor ? TENSOR_QUALITY : QUALITY);
    if (rc == 0)
        rc = jpeg_encode(rendition->jpeg, &image, file, file_size);
    if (rc == -ECHRNG)
        snprintf(why, size, "has no plane %d", rendition->params.plane);
    else if (rc < 0)
        snprintf(why, size, "cannot be encoded: %s", strerror(-rc));
    return rc;
}

// --- what it shows

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
    if (rendition->params.plane >= 0)
        fprintf(to, ",\"plane\":%d", rendition->params.plane);
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

// A picture's facts change only with its parameters or source.
const char *rendition_describe(struct rendition *rendition)
{
    const struct op *op = &rendition->op;
    char *text = rendition->facts;
    if (*text && !rendition->params.tensor)
        return text;
    *text = 0;
    FILE *to = fmemopen(text, sizeof rendition->facts, "w");
    if (!to)
        return text;
    fprintf(to, "\"width\":%d,\"height\":%d,\"source\":[%d,%d]", op->dst.width, op->dst.height,
            rendition->source.width, rendition->source.height);
    put_matrix(to, "src_to_dst", op->src_to_dst);
    put_matrix(to, "dst_to_src", op->dst_to_src);
    if (rendition->params.tensor)
        put_tensor(to, rendition);
    fclose(to);
    return text;
}

// --- tensors as pictures

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
