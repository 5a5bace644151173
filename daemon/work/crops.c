#include "daemon/work/crops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/device/budget.h"
#include "daemon/output/crop_requests.h"
#include "daemon/wire.h"
#include "daemon/work/geometry.h"

struct crops {
    const struct device_lease *lease;
    struct event_queue *events;
    struct subscription subscription;
    struct output *output;
    int most; // elements per batch
    struct crops *next;

    // The camera's thread:
    const struct output *of; // the output whose objects are shown; NULL: it is gone
    uint64_t ordinal;        // of that output: behind the last picture kept

    // The camera's thread changes these while no request is served:
    struct geometry geometry; // no plan: elements cannot be made
    struct kept_pictures *pictures;

    // For the request being served:
    struct job job;
    struct frame frame;       // its picture
    struct element *elements; // `most` of them; the first n are made
    int n;
    struct result *result;            // the batch that it fills
    uint64_t first_sequence, claimed; // of the first batch; number of batches
    uint32_t epoch;                   // of the last batch
};

// --- the end of a request

// Any thread. The caller's last access to the request.
static void end_request(struct crops *crops)
{
    while (crops->n > 0)
        op_finish(&crops->elements[--crops->n].op);
    frame_release(&crops->frame);
    crop_requests_done(crops->output->requests, crops->events);
}

static void complete(struct crops *crops, int status)
{
    struct output *output = crops->output;
    if (status == -EIO || status == -ENODEV)
        device_failed(crops->lease, status);
    if (status == 0)
        latency_observe(&output->latency, monotonic_ns() - crops->frame.info.received_ns);
    pool_complete(output->pool, crops->result, 0, crops->n, status);
    event_post(crops->events, &output->outlet->ready);
    end_request(crops);
}

// Backend thread.
static void job_done(struct job *job, int status)
{
    complete(job->opaque, status);
}

// --- a request

// Makes an element of the whole picture.
static const struct op *whole_of(const struct crops *crops)
{
    return &crops->geometry.elements[0].op;
}

// Makes ops for the request's boxes, and drops boxes that no op can show.
static void make_elements(struct crops *crops, struct crop_request *request)
{
    for (int i = 0; i < request->n; i++) {
        struct op_params params = crops->subscription.op;
        struct element *element = &crops->elements[crops->n];
        params.warp.crop = request->box[i].rect;
        if (op_init(&element->op, &params, &crops->geometry.source) < 0)
            continue;
        if (!op_replaces(&element->op, whole_of(crops))) {
            op_finish(&element->op);
            continue;
        }
        element->region = request->box[i].rect;
        element->name = request->region;
        request->box[crops->n++] = request->box[i];
    }
}

static void describe_batch(struct crops *crops, const struct crop_request *request)
{
    struct result *result = crops->result;
    const struct elements elements = {crops->elements, crops->n};
    struct frame_info info = crops->frame.info;
    if (crops->claimed == 0)
        crops->first_sequence = request->sequence;
    const bool new_epoch = crops->claimed == 0 || crops->epoch != info.epoch;
    info.flags &= ~(uint32_t)FRAMED_FLAG_FIRST_OF_EPOCH;
    for (int i = 0; i < crops->n; i++) {
        result->item[i].new_epoch = new_epoch;
        result->item[i].lost = request->sequence - crops->first_sequence - crops->claimed;
    }
    elements_describe(result, 0, &elements, crops->output, &info, request->sequence,
                      request->sequence);
    for (int i = 0; i < crops->n; i++) {
        result->item[i].parent_sequence = request->parent_sequence;
        result->item[i].object = request->box[i].object;
    }
    crops->epoch = info.epoch;
    crops->claimed++;
    result->batch_sequence = request->sequence;
    result->closed_by = crops->n == crops->most ? CLOSED_FULL : CLOSED_ALL;
    result->opened_ns = result->closed_ns = monotonic_ns();
}

// Claims a batch for the job's elements; the rest of it is empty. Returns 0, or as pool_claim.
static int claim_batch(struct crops *crops, const struct crop_request *request)
{
    static const _Atomic bool never = false;
    struct output *output = crops->output;
    struct pool_request claim = {
        .size = whole_of(crops)->dst_bytes,
        .items = crops->most,
        .ledger = &output->ledger,
        .stop = &never,
    };
    int rc = pool_claim(output->pool, &claim, &crops->result);
    if (rc < 0)
        return rc;
    crops->result->format = elements_format(whole_of(crops), output, crops->frame.info.field_order,
                                            0, 0, crops->result->data);
    describe_batch(crops, request);
    if (crops->n < crops->most)
        pool_complete(output->pool, crops->result, crops->n, crops->most - crops->n, -ECANCELED);
    return 0;
}

static void submit_job(struct crops *crops)
{
    struct job_result *results = crops->geometry.results;
    memset(results, 0, (size_t)crops->most * sizeof *results);
    for (int i = 0; i < crops->n; i++) {
        const struct op *op = &crops->elements[i].op;
        results[i] = (struct job_result){
            .data = (uint8_t *)crops->result->data + (size_t)i * op->dst_bytes,
            .memory = crops->result->memory,
            .op = op,
        };
    }
    crops->job = (struct job){
        .src = crops->frame.image,
        .results = results,
        .n = crops->most,
        .done = job_done,
        .opaque = crops,
    };
    int rc = crops->lease->driver->submit(crops->geometry.plan, &crops->job);
    if (rc < 0)
        complete(crops, rc);
}

static void serve(void *opaque, struct crop_request *request)
{
    struct crops *crops = opaque;
    const int64_t max_age_ns = crops->output->config->max_age.ns;
    enum loss reason = LOSS_LATE;
    int rc = -1;
    if (kept_pictures_find(crops->pictures, &request->frame, &crops->frame) &&
        !frame_is_late(&crops->frame.info, max_age_ns)) {
        if (crops->geometry.plan)
            make_elements(crops, request);
        reason = LOSS_CONFIG;
        if (crops->n > 0)
            reason = claim_loss(rc = claim_batch(crops, request), false);
    }
    if (rc == 0) {
        submit_job(crops);
        return;
    }
    ledger_lose(&crops->output->ledger, reason);
    end_request(crops);
}

// --- for pictures of one geometry

static void drain(struct crops *crops)
{
    crop_requests_drain(crops->output->requests);
    kept_pictures_close(crops->pictures);
    crops->pictures = NULL;
    geometry_close(&crops->geometry, crops->lease);
}

static int prepare(struct crops *crops, const struct image *source, int num, int den, char *notice,
                   size_t size)
{
    const struct crops_config *config = &crops->output->config->crops;
    const struct backend_driver *driver = crops->lease->driver;
    const int most = budget_kept_pictures(config, num, den);
    if (geometry_is_alike(&crops->geometry.source, source))
        return 0;
    drain(crops);
    int rc = geometry_open(&crops->geometry, crops->lease, &crops->subscription, 1, source,
                           kept_pictures_need(source, most), NULL, notice, size);
    if (rc == 0)
        rc = kept_pictures_open(&crops->pictures, crops->lease, source, most, config->keep.ns);
    if (rc == -ENOMEM && driver->device_bytes)
        rc = -ENOSPC;
    if (rc < 0)
        drain(crops);
    else
        crop_requests_serve(crops->output->requests, serve, crops);
    return rc;
}

// --- life

static struct crops *open_crops(const struct subscription *subscription,
                                const struct device_lease *lease, struct event_queue *events)
{
    const int most = subscription->output->config->capacity;
    struct crops *crops = calloc(1, sizeof *crops);
    struct element *elements = calloc((size_t)most, sizeof *elements);
    if (!crops || !elements) {
        free(crops);
        free(elements);
        return NULL;
    }
    *crops = (struct crops){
        .lease = lease,
        .events = events,
        .subscription = *subscription,
        .output = subscription->output,
        .most = most,
        .elements = elements,
    };
    return crops;
}

// --- all of a camera

// Removes the crops of that output from the list and returns them; NULL: there are none.
static struct crops *take_crops(struct crops **list, const struct output *output)
{
    while (*list && (*list)->output != output)
        list = &(*list)->next;
    struct crops *crops = *list;
    if (crops)
        *list = crops->next;
    return crops;
}

void crops_subscribe(struct crops **list, const struct subscriptions *subscriptions,
                     const struct device_lease *lease, struct event_queue *events)
{
    struct crops *former = *list;
    *list = NULL;
    for (int i = subscriptions->n_pictures; i < subscriptions->n_pools; i++) {
        const struct subscription *own = &subscriptions->list[i];
        const struct output_config *config = own->output->config;
        struct crops *crops = take_crops(&former, own->output);
        if (!crops && !(crops = open_crops(own, lease, events))) {
            log_event(LOG_LEVEL_ERROR, "output=%s no crops: %s", config->name, strerror(ENOMEM));
            continue;
        }
        crops->of = subscriptions_find(subscriptions, config->crops.of);
        crops->ordinal = 0;
        crops->next = *list;
        *list = crops;
    }
    crops_close(&former);
}

void crops_close(struct crops **list)
{
    while (*list) {
        struct crops *crops = *list;
        *list = crops->next;
        drain(crops);
        free(crops->elements);
        free(crops);
    }
}

int crops_prepare(struct crops *list, const struct image *source, int num, int den, char *notice,
                  size_t size)
{
    int rc = 0;
    for (; list && rc == 0; list = list->next)
        rc = prepare(list, source, num, den, notice, size);
    return rc;
}

void crops_keep(struct crops *list, struct frame *frame)
{
    for (; list; list = list->next) {
        if (!list->of || list->of->ordinal == list->ordinal || !list->pictures)
            continue;
        list->ordinal = list->of->ordinal;
        if (kept_pictures_add(list->pictures, frame) == -EIO)
            device_failed(list->lease, -EIO);
    }
}

int64_t crops_keep_ns(const struct crops *list)
{
    int64_t longest_ns = 0;
    for (; list; list = list->next) {
        const int64_t ns = list->output->config->crops.keep.ns;
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    return longest_ns;
}

void crops_drain(struct crops *list)
{
    for (; list; list = list->next)
        drain(list);
}
