#include "daemon/work/geometry.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/region.h"

enum {
    ELEMENTS_MAX = PLAN_OPS_MAX - DEMANDS_MAX, // of outputs that are not for viewers
    FINE = 3,                                  // of 3x3 pixels, bilinear reads 2x2
};

bool geometry_is_alike(const struct image *a, const struct image *b)
{
    return a->format == b->format && a->width == b->width && a->height == b->height &&
           a->memory == b->memory && a->orientation == b->orientation &&
           a->colour.matrix == b->colour.matrix && a->colour.range == b->colour.range &&
           a->colour.siting == b->colour.siting;
}

bool geometry_fits(const struct geometry *geometry, const struct image *source)
{
    return geometry_is_alike(&geometry->source, source);
}

void geometry_note(const struct image *source, const char *output, int rc, char *notice,
                   size_t size)
{
    const size_t used = strlen(notice);
    snprintf(notice + used, size - used, "%soutput %s cannot be made from %s %dx%d: %s",
             used ? "; " : "", output, pixel_format_name(source->format), source->width,
             source->height,
             rc == -EINVAL      ? "the crop or affine leaves the picture"
             : rc == -EDOM      ? "fit deepstream reads at least 2x2 pixels"
             : rc == -ERANGE    ? "positions leave 32 bits"
             : rc == -E2BIG     ? "tiles and outputs are more than 64"
             : rc == -EOVERFLOW ? "its tiles are more than the batch holds (count)"
                                : strerror(-rc));
}

// Computes the regions of the source that a subscription's elements show. Returns their number, or
// an error as tiles_make.
static int regions_of(struct rect regions[TILES_MAX], const struct subscription *subscription,
                      const struct image *source)
{
    const struct op_params *op = &subscription->op;
    const struct rois *chosen = &subscription->output->config->roi.chosen;
    for (int i = 0; i < chosen->n && i < TILES_MAX; i++)
        regions[i] = chosen->list[i].rect;
    if (chosen->n > 0)
        return chosen->n < TILES_MAX ? chosen->n : TILES_MAX;
    regions[0] = (struct rect){0, 0, source->width, source->height};
    if (op->kind == OP_WARP && op->warp.crop.width > 0)
        regions[0] = op->warp.crop;
    if (subscription->tiling.size == 0)
        return 1;
    return op->kind == OP_WARP ? tiles_make(regions, &subscription->tiling, regions[0]) : -EINVAL;
}

// Gives a picture for viewers, which has a width alone, the source's shape. It is never enlarged,
// and filtered by area only where bilinear would skip pixels.
static void follow_source(struct warp_params *picture, const struct image *source)
{
    const bool turned = source->orientation & ORIENTATION_QUARTER;
    const int shown_width = turned ? source->height : source->width;
    const int shown_height = turned ? source->width : source->height;
    if (picture->width * FINE >= shown_width)
        picture->filter = FILTER_BILINEAR;
    if (picture->width > shown_width)
        picture->width = shown_width;
    picture->height = (int)lround((double)picture->width * shown_height / shown_width);
    picture->height = picture->height > 0 ? picture->height : 1;
}

static struct op_params params_of(const struct subscription *subscription, int n,
                                  const struct rect *region, const struct image *source)
{
    struct op_params params = subscription->op;
    if (n > 1 || subscription->tiling.size)
        params.warp.crop = *region;
    const struct demand *demand = subscription->output->demand;
    if (demand && !demand->of)
        follow_source(&params.yuv.geometry, source);
    return params;
}

int geometry_first(struct op_params *ret, const struct subscription *subscription,
                   const struct image *source)
{
    struct rect regions[TILES_MAX];
    const int n = regions_of(regions, subscription, source);
    if (n < 0)
        return -EINVAL;
    *ret = params_of(subscription, n, regions, source);
    return 0;
}

static void finish_elements(struct geometry *geometry, int from)
{
    while (geometry->n > from)
        op_finish(&geometry->elements[--geometry->n].op);
}

// Appends all elements of a subscription, or none; viewers see the first one. Returns 0 or a
// negative errno.
static int open_elements(struct geometry *geometry, const struct subscription *subscription)
{
    const int before = geometry->n;
    struct rect regions[TILES_MAX];
    const struct output_config *config = subscription->output->config;
    const bool is_viewed = subscription->output->demand;
    const int all = regions_of(regions, subscription, &geometry->source);
    const int n = is_viewed && all > 0 ? 1 : all;
    if (n < 0 || before + n > (is_viewed ? PLAN_OPS_MAX : ELEMENTS_MAX))
        return n < 0 ? n : -E2BIG;
    if (config->is_batch && n > config->capacity)
        return -EOVERFLOW;
    struct element *elements = realloc(geometry->elements, (size_t)(before + n) * sizeof *elements);
    if (!elements)
        return -ENOMEM;
    geometry->elements = elements;
    const struct rois *rois = &config->roi.chosen;
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        const struct op_params params =
            params_of(subscription, all, &regions[i], &geometry->source);
        struct element *element = &elements[geometry->n];
        element->region = regions[i];
        element->name = rois->n > 0 ? rois->list[i].name : "";
        rc = op_init(&element->op, &params, &geometry->source);
        geometry->n += rc == 0;
    }
    if (rc < 0)
        finish_elements(geometry, before);
    return rc;
}

// Returns 0 or -ENOMEM.
static int open_all(struct geometry *geometry, const struct subscriptions *subscriptions,
                    int unviewed, char *notice, size_t size)
{
    for (int i = 0; i < subscriptions->n_pictures; i++) {
        const struct subscription *subscription = &subscriptions->list[i];
        struct demand *demand = subscription->output->demand;
        int rc = demand && unviewed ? unviewed : open_elements(geometry, subscription);
        if (demand)
            demand->unmade = rc;
        else if (rc == -ENOMEM)
            return rc;
        else if (rc < 0)
            geometry_note(&geometry->source, subscription->output->config->name, rc, notice, size);
        geometry->first[i + 1] = geometry->n;
    }
    geometry->results =
        calloc((size_t)geometry->n * FRAMES_IN_FLIGHT_MAX + 1, sizeof *geometry->results);
    return geometry->results ? 0 : -ENOMEM;
}

// Returns the camera's device memory: the plan's buffers, NVDEC's surfaces, and results on the
// device.
static size_t device_bytes(const struct geometry *geometry, const struct backend_driver *driver,
                           const struct subscriptions *subscriptions, const struct frame *frame,
                           const struct op *const ops[])
{
    const struct image *source = &frame->image;
    size_t bytes = driver->plan_need(source, ops, geometry->n, frames_in_flight(driver)).device;
    if (source->memory == MEMORY_CUDA)
        bytes += budget_nvdec(frame->codec, source->width, source->height,
                              source->format == PIXEL_P010 ? 10 : 8, frame->surfaces);
    for (int i = 0; driver->export_open && i < subscriptions->n_pictures; i++) {
        const struct output_config *output = subscriptions->list[i].output->config;
        for (int k = geometry->first[i]; k < geometry->first[i + 1]; k++)
            if (output->memory != RING_HOST) // for a batch: this camera's share
                bytes += pool_region_need(REGION_DEVICE, output->slots,
                                          geometry->elements[k].op.dst_bytes)
                             .device;
    }
    return bytes;
}

int geometry_open_plan(struct plan **ret, size_t *reserved, size_t bytes,
                       const struct device_lease *lease, const struct image *source,
                       const struct op *const ops[], int n, char *notice, size_t size)
{
    const struct backend_driver *driver = lease->driver;
    size_t left = 0;
    int rc = device_reserve(lease, bytes, &left);
    if (rc == 0) {
        *reserved = bytes;
        left = 0;
        rc = driver->plan_open(lease->backend, ret, source, ops, n, frames_in_flight(driver));
    }
    if (rc == -ENOMEM && driver->device_bytes)
        rc = -ENOSPC;
    if (rc == -ENOSPC)
        snprintf(notice, size,
                 "needs %zu MiB of device memory, %zu MiB are left: goes to another device",
                 (bytes + (1 << 20) - 1) >> 20, left >> 20);
    return rc;
}

// `leaves_room`: only in memory that cameras can do without.
static int open_plan(struct geometry *geometry, const struct device_lease *lease,
                     const struct subscriptions *subscriptions, const struct frame *frame,
                     bool leaves_room, char *notice, size_t size)
{
    const struct op *ops[PLAN_OPS_MAX];
    for (int i = 0; i < geometry->n; i++)
        ops[i] = &geometry->elements[i].op;
    const size_t bytes = device_bytes(geometry, lease->driver, subscriptions, frame, ops);
    size_t left;
    int rc = leaves_room ? device_reserve_spare(lease, bytes, &left) : 0;
    if (rc < 0)
        return rc;
    if (leaves_room)
        device_unreserve(lease, bytes); // it is reserved with the plan
    return geometry_open_plan(&geometry->plan, &geometry->reserved, bytes, lease, &frame->image,
                              ops, geometry->n, notice, size);
}

// `unviewed`: why outputs for viewers are left out; 0: they are not.
static int open_geometry(struct geometry *geometry, const struct device_lease *lease,
                         const struct subscriptions *subscriptions, const struct frame *frame,
                         int unviewed, char *notice, size_t size)
{
    geometry->source = frame->image;
    notice[0] = 0;
    int rc = open_all(geometry, subscriptions, unviewed, notice, size);
    if (rc == 0 && geometry->n > 0)
        rc = open_plan(geometry, lease, subscriptions, frame, unviewed == 0, notice, size);
    if (rc < 0)
        geometry_close(geometry, lease);
    return rc;
}

int geometry_open(struct geometry *geometry, const struct device_lease *lease,
                  const struct subscriptions *subscriptions, const struct frame *frame,
                  char *notice, size_t size)
{
    const int n = subscriptions->n_pictures;
    int rc = -ENOSPC;
    if (n > 0 && subscriptions->list[n - 1].output->demand)
        rc = open_geometry(geometry, lease, subscriptions, frame, 0, notice, size);
    return rc < 0 ? open_geometry(geometry, lease, subscriptions, frame, rc, notice, size) : rc;
}

void geometry_close(struct geometry *geometry, const struct device_lease *lease)
{
    if (geometry->plan)
        lease->driver->plan_close(geometry->plan);
    if (geometry->reserved)
        device_unreserve(lease, geometry->reserved);
    finish_elements(geometry, 0);
    free(geometry->elements);
    free(geometry->results);
    *geometry = (struct geometry){.source.format = PIXEL_NONE};
}
