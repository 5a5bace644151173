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

// Appends a sentence: that the output cannot be made from such a source, and why.
static void note_failure(const struct image *source, const char *output, int rc,
                         char notice[NOTICE_MAX])
{
    const size_t used = strlen(notice);
    snprintf(notice + used, NOTICE_MAX - used, "%soutput %s cannot be made from %s %dx%d: %s",
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
    const struct output_config *config = subscription->output->config;
    const struct rois *chosen = &config->roi.chosen;
    for (int i = 0; i < chosen->n && i < TILES_MAX; i++)
        regions[i] = chosen->list[i].rect;
    if (chosen->n > 0)
        return chosen->n < TILES_MAX ? chosen->n : TILES_MAX;
    regions[0] = (struct rect){0, 0, source->width, source->height};
    if (op->kind == OP_WARP && op->warp.crop.width > 0)
        regions[0] = op->warp.crop;
    for (int i = 1; config->crops.of && i < config->capacity; i++)
        regions[i] = regions[0];
    if (subscription->tiling.size == 0)
        return config->crops.of ? config->capacity : 1;
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
    if (!subscription->output->config->crops.of && (n > 1 || subscription->tiling.size))
        params.warp.crop = *region;
    const struct demand *demand = subscription->output->demand;
    if (demand && !demand->of)
        follow_source(&params.yuv.geometry, source);
    return params;
}

static void finish_elements(struct geometry *geometry, int from)
{
    while (geometry->n > from)
        op_finish(&geometry->elements[--geometry->n].op);
}

// Appends all elements of a subscription, or none; viewers see the first one. Returns 0 or a
// negative errno.
static int open_elements(struct geometry *geometry, int at)
{
    const struct subscription *subscription = &geometry->list[at];
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
        element->op.moves = config->crops.of;
        geometry->n += rc == 0;
    }
    if (rc < 0)
        finish_elements(geometry, before);
    return rc;
}

// Returns 0 or -ENOMEM. `unviewed`: why outputs for viewers are left out; 0: they are not.
static int open_all(struct geometry *geometry, int unviewed, char notice[NOTICE_MAX])
{
    for (int i = 0; i < geometry->n_outputs; i++) {
        const struct output *output = geometry->list[i].output;
        int rc = output->demand && unviewed ? unviewed : open_elements(geometry, i);
        if (output->demand)
            output->demand->unmade = rc;
        else if (rc == -ENOMEM)
            return rc;
        else if (rc < 0)
            note_failure(&geometry->source, output->config->name, rc, notice);
        geometry->first[i + 1] = geometry->n;
    }
    geometry->results =
        calloc((size_t)geometry->n * FRAMES_IN_FLIGHT_MAX + 1, sizeof *geometry->results);
    return geometry->results ? 0 : -ENOMEM;
}

// Returns the device memory of the outputs' results: of a batch, the share of its elements.
static size_t results_bytes(const struct geometry *geometry)
{
    size_t bytes = 0;
    for (int i = 0; i < geometry->n_outputs && geometry->lease->driver->export_open; i++) {
        const struct output_config *output = geometry->list[i].output->config;
        const struct elements elements = geometry_elements(geometry, i);
        const int step = output->crops.of ? elements.n : 1; // a slot has all elements of crops
        for (int k = 0; k < elements.n && output->memory != RING_HOST; k += step) {
            const size_t size = elements.list[k].op.dst_bytes * (size_t)step;
            bytes += pool_region_need(REGION_DEVICE, output->slots, size).device;
        }
    }
    return bytes;
}

// `lasting`: bytes to reserve beside the plan's. `leaves_room`: only in memory that cameras can do
// without.
static int open_plan(struct geometry *geometry, size_t lasting, struct geometry *former,
                     bool leaves_room, char notice[NOTICE_MAX])
{
    const struct device_lease *lease = geometry->lease;
    const struct backend_driver *driver = lease->driver;
    const int depth = frames_in_flight(driver);
    const struct op *ops[PLAN_OPS_MAX];
    size_t common = former ? former->lasting : 0, left = 0;
    if (common > lasting)
        common = lasting;
    for (int i = 0; i < geometry->n; i++)
        ops[i] = &geometry->elements[i].op;
    const size_t bytes =
        lasting - common + driver->plan_need(&geometry->source, ops, geometry->n, depth).device;
    int rc = leaves_room ? device_reserve_spare(lease, bytes, &left)
                         : device_reserve(lease, bytes, &left);
    if (rc == 0) {
        geometry->reserved = bytes;
        left = 0;
        rc = driver->plan_open(lease->backend, &geometry->plan, &geometry->source, ops, geometry->n,
                               depth);
    }
    if (rc == 0)
        geometry->lasting = lasting;
    if (rc == 0 && former) {
        geometry->reserved += common;
        former->reserved -= common;
        former->lasting -= common;
    }
    if (rc == -ENOMEM && driver->device_bytes)
        rc = -ENOSPC;
    if (rc == -ENOSPC)
        snprintf(notice, NOTICE_MAX,
                 "needs %zu MiB of device memory, %zu MiB are left: goes to another device",
                 (bytes + (1 << 20) - 1) >> 20, left >> 20);
    return rc;
}

// `unviewed` as in open_all.
static int open_geometry(struct geometry *geometry, const struct image *source, size_t bytes,
                         struct geometry *former, int unviewed, char notice[NOTICE_MAX])
{
    geometry->source = *source;
    int rc = open_all(geometry, unviewed, notice);
    if (rc == 0 && geometry->n > 0)
        rc = open_plan(geometry, bytes + results_bytes(geometry), former, unviewed == 0, notice);
    if (rc < 0)
        geometry_close(geometry);
    return rc;
}

int geometry_open(struct geometry *geometry, const struct image *source, size_t bytes,
                  struct geometry *former, char notice[NOTICE_MAX])
{
    const size_t before = strlen(notice);
    const int n = geometry->n_outputs;
    int rc = -ENOSPC;
    if (n > 0 && geometry->list[n - 1].output->demand)
        rc = open_geometry(geometry, source, bytes, former, 0, notice);
    if (rc < 0) {
        notice[before] = 0;
        rc = open_geometry(geometry, source, bytes, former, rc, notice);
    }
    return rc;
}

void geometry_close(struct geometry *geometry)
{
    if (geometry->plan)
        geometry->lease->driver->plan_close(geometry->plan);
    if (geometry->reserved)
        device_unreserve(geometry->lease, geometry->reserved);
    finish_elements(geometry, 0);
    free(geometry->elements);
    free(geometry->results);
    // Other threads may read the owner's members, which come first.
    memset(&geometry->source, 0, sizeof *geometry - offsetof(struct geometry, source));
}

struct elements geometry_elements(const struct geometry *geometry, int subscription)
{
    const int at = geometry->first[subscription];
    return (struct elements){geometry->elements + at, geometry->first[subscription + 1] - at};
}
