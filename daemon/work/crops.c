#include "daemon/work/crops.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/device/budget.h"
#include "daemon/output/crop_requests.h"
#include "daemon/wire.h"
#include "daemon/work/geometry.h"

// One request in the backend: the job, its picture, and the batch that it fills.
struct crop_job {
    struct job job;
    struct job_result *results; // one per element of the batch
    struct element *elements;   // the same number; the first n are made
    int n;
    struct frame frame;
    struct result *result;
    struct crops *crops;
    bool busy; // under lock
};

struct crops {
    const struct device_lease *lease;
    struct event_queue *events;
    struct subscription subscription;
    struct output *output;
    int most; // elements per batch
    pthread_t thread;

    // The camera's thread changes these while no job is busy and no picture is kept:
    struct image source; // like the pictures; PIXEL_NONE: not prepared
    struct op whole;     // makes an element from a whole picture
    struct plan *plan;   // NULL: elements cannot be made
    size_t reserved;     // bytes of the lease's device

    // Crops thread only:
    uint64_t first_sequence, claimed; // of the first batch; number of batches
    uint32_t epoch;                   // of the last batch

    pthread_mutex_t lock;           // guards the jobs' `busy` and the fields below
    pthread_cond_t done;            // a job is no longer busy
    struct kept_pictures *pictures; // NULL: none are kept
    int depth;                      // jobs that the backend takes at once
    struct crop_job jobs[FRAMES_IN_FLIGHT_MAX];
};

// --- the end of a request

static void lose_request(struct crops *crops, enum loss reason)
{
    ledger_lose(&crops->output->ledger, reason);
}

// Any thread. The caller's last access to the job.
static void release_job(struct crop_job *job)
{
    struct crops *crops = job->crops;
    while (job->n > 0)
        op_finish(&job->elements[--job->n].op);
    frame_release(&job->frame);
    pthread_mutex_lock(&crops->lock);
    job->busy = false;
    pthread_cond_broadcast(&crops->done);
    pthread_mutex_unlock(&crops->lock);
}

static void complete_job(struct crop_job *job, int status)
{
    struct crops *crops = job->crops;
    struct output *output = crops->output;
    if (status == -EIO || status == -ENODEV)
        device_failed(crops->lease, status);
    if (status == 0)
        latency_observe(&output->latency, monotonic_ns() - job->frame.info.received_ns);
    pool_complete(output->pool, job->result, 0, job->n, status);
    event_post(crops->events, &output->ready);
    release_job(job);
}

// Backend thread.
static void job_done(struct job *job, int status)
{
    complete_job(job->opaque, status);
}

// --- a request

// Waits for a job that is not busy, under lock. NULL: no pictures are kept.
static struct crop_job *wait_for_job(struct crops *crops)
{
    while (crops->pictures) {
        for (int i = 0; i < crops->depth; i++)
            if (!crops->jobs[i].busy)
                return &crops->jobs[i];
        pthread_cond_wait(&crops->done, &crops->lock);
    }
    return NULL;
}

// Starts a job with the request's picture; the plan stays open while the job is busy. NULL: the
// picture is not kept any more.
static struct crop_job *begin_job(struct crops *crops, const struct crop_request *request)
{
    pthread_mutex_lock(&crops->lock);
    struct crop_job *job = wait_for_job(crops);
    if (job && !kept_pictures_find(crops->pictures, &request->frame, &job->frame))
        job = NULL;
    if (job)
        job->busy = true;
    pthread_mutex_unlock(&crops->lock);
    return job;
}

// Makes ops for the request's boxes, and drops boxes that no op can show.
static void make_elements(struct crop_job *job, struct crop_request *request)
{
    const struct crops *crops = job->crops;
    int n = 0;
    for (int i = 0; i < request->n; i++) {
        struct op_params params = crops->subscription.op;
        struct element *element = &job->elements[n];
        params.warp.crop = request->box[i].rect;
        if (op_init(&element->op, &params, &crops->source) < 0)
            continue;
        job->n = n + 1;
        if (!op_replaces(&element->op, &crops->whole)) {
            op_finish(&element->op);
            job->n = n;
            continue;
        }
        element->region = request->box[i].rect;
        element->name = request->region;
        request->box[n++] = request->box[i];
    }
}

static void describe_batch(struct crop_job *job, const struct crop_request *request)
{
    struct crops *crops = job->crops;
    struct result *result = job->result;
    const struct elements elements = {job->elements, job->n};
    struct frame_info info = job->frame.info;
    if (crops->claimed == 0)
        crops->first_sequence = request->sequence;
    const bool new_epoch = crops->claimed == 0 || crops->epoch != info.epoch;
    info.flags &= ~(uint32_t)FRAMED_FLAG_FIRST_OF_EPOCH;
    for (int i = 0; i < job->n; i++) {
        result->item[i].new_epoch = new_epoch;
        result->item[i].lost = request->sequence - crops->first_sequence - crops->claimed;
    }
    elements_describe(result, 0, &elements, crops->output, &info, request->sequence,
                      request->sequence);
    for (int i = 0; i < job->n; i++) {
        result->item[i].parent_sequence = request->parent_sequence;
        result->item[i].object = request->box[i].object;
    }
    crops->epoch = info.epoch;
    crops->claimed++;
    result->batch_sequence = request->sequence;
    result->closed_by = job->n == crops->most ? CLOSED_FULL : CLOSED_ALL;
    result->opened_ns = result->closed_ns = monotonic_ns();
}

// Claims a batch for the job's elements; the rest of it is empty. Returns 0, or as pool_claim.
static int claim_batch(struct crop_job *job, const struct crop_request *request)
{
    static const _Atomic bool never = false;
    struct crops *crops = job->crops;
    struct output *output = crops->output;
    struct pool_request claim = {
        .size = crops->whole.dst_bytes,
        .items = crops->most,
        .ledger = &output->ledger,
        .stop = &never,
    };
    int rc = pool_claim(output->pool, &claim, &job->result);
    if (rc < 0)
        return rc;
    job->result->format = elements_format(&crops->whole, output, job->frame.info.field_order, 0, 0,
                                          job->result->data);
    describe_batch(job, request);
    if (job->n < crops->most)
        pool_complete(output->pool, job->result, job->n, crops->most - job->n, -ECANCELED);
    return 0;
}

static void submit_job(struct crop_job *job)
{
    const struct crops *crops = job->crops;
    memset(job->results, 0, (size_t)crops->most * sizeof *job->results);
    for (int i = 0; i < job->n; i++) {
        const struct op *op = &job->elements[i].op;
        job->results[i] = (struct job_result){
            .data = (uint8_t *)job->result->data + (size_t)i * op->dst_bytes,
            .memory = job->result->memory,
            .op = op,
        };
    }
    job->job = (struct job){
        .src = job->frame.image,
        .results = job->results,
        .n = crops->most,
        .done = job_done,
        .opaque = job,
    };
    int rc = crops->lease->driver->submit(crops->plan, &job->job);
    if (rc < 0)
        complete_job(job, rc);
}

static void answer_request(struct crops *crops, struct crop_request *request)
{
    const int64_t max_age_ns = crops->output->config->max_age.ns;
    struct crop_job *job = begin_job(crops, request);
    if (!job) {
        lose_request(crops, LOSS_LATE);
        return;
    }
    enum loss reason = LOSS_LATE;
    int rc = -1;
    if (!frame_is_late(&job->frame.info, max_age_ns)) {
        if (crops->plan)
            make_elements(job, request);
        reason = LOSS_CONFIG;
        if (job->n > 0)
            reason = claim_loss(rc = claim_batch(job, request), false);
    }
    if (rc == 0) {
        submit_job(job);
        return;
    }
    lose_request(crops, reason);
    release_job(job);
}

static int64_t expire_pictures(struct crops *crops)
{
    int64_t until_ns = INT64_MAX;
    pthread_mutex_lock(&crops->lock);
    if (crops->pictures)
        until_ns = kept_pictures_expire(crops->pictures);
    pthread_mutex_unlock(&crops->lock);
    return until_ns;
}

static void *run_crops(void *opaque)
{
    struct crops *crops = opaque;
    struct crop_request request;
    int64_t until_ns = INT64_MAX;
    int rc;
    pthread_setname_np(pthread_self(), "crops");
    while ((rc = crop_requests_take(crops->output->requests, &request, until_ns)) != -ESHUTDOWN) {
        if (rc == 0)
            answer_request(crops, &request);
        until_ns = expire_pictures(crops);
    }
    return NULL;
}

// --- pictures

static void crops_keep(struct crops *crops, struct frame *frame)
{
    const int rc = crops->pictures ? kept_pictures_add(crops->pictures, frame) : 0;
    if (rc > 0)
        crop_requests_wake(crops->output->requests); // so that the thread releases it in time
    else if (rc == -EIO)
        device_failed(crops->lease, rc);
}

static void wait_for_jobs(struct crops *crops)
{
    for (int i = 0; i < FRAMES_IN_FLIGHT_MAX; i++)
        while (crops->jobs[i].busy)
            pthread_cond_wait(&crops->done, &crops->lock);
}

static void crops_drain(struct crops *crops)
{
    pthread_mutex_lock(&crops->lock);
    struct kept_pictures *pictures = crops->pictures;
    crops->pictures = NULL; // no new job begins
    pthread_mutex_unlock(&crops->lock);
    crop_requests_drain(crops->output->requests);
    pthread_mutex_lock(&crops->lock);
    wait_for_jobs(crops);
    pthread_mutex_unlock(&crops->lock);
    kept_pictures_close(pictures);
    if (crops->plan)
        crops->lease->driver->plan_close(crops->plan);
    if (crops->reserved)
        device_unreserve(crops->lease, crops->reserved);
    op_finish(&crops->whole);
    crops->plan = NULL;
    crops->reserved = 0;
    crops->source = (struct image){.format = PIXEL_NONE};
}

static int open_plan(struct crops *crops, const struct image *source, int most, char *notice,
                     size_t size)
{
    const struct output_config *config = crops->output->config;
    const struct backend_driver *driver = crops->lease->driver;
    const struct op *ops[PLAN_OPS_MAX];
    for (int i = 0; i < crops->most; i++)
        ops[i] = &crops->whole;
    size_t bytes = driver->plan_need(source, ops, crops->most, frames_in_flight(driver)).device +
                   kept_pictures_need(source, most);
    if (driver->export_open && config->memory != RING_HOST)
        bytes += pool_region_need(REGION_DEVICE, config->slots,
                                  crops->whole.dst_bytes * (size_t)crops->most)
                     .device;
    return geometry_open_plan(&crops->plan, &crops->reserved, bytes, crops->lease, source, ops,
                              crops->most, notice, size);
}

// Opens a plan, unless the output cannot be made from such pictures.
static int open_geometry(struct crops *crops, const struct image *source, int most, char *notice,
                         size_t size)
{
    int rc = op_init(&crops->whole, &crops->subscription.op, source);
    crops->source = *source;
    crops->whole.moves = true;
    if (rc == 0)
        return open_plan(crops, source, most, notice, size);
    crops->whole = (struct op){0};
    if (rc != -ENOMEM)
        geometry_note(source, crops->output->config->name, rc, notice, size);
    return rc == -ENOMEM ? rc : 0;
}

static int crops_prepare(struct crops *crops, const struct frame *frame, int num, int den,
                         char *notice, size_t size)
{
    const struct crops_config *config = &crops->output->config->crops;
    const struct device_lease *lease = crops->lease;
    const struct kept_pictures_options options = {
        lease, &frame->image, budget_kept_pictures(config, num, den), config->keep.ns};
    struct kept_pictures *pictures = NULL;
    if (geometry_is_alike(&crops->source, &frame->image))
        return 0;
    crops_drain(crops);
    int rc = open_geometry(crops, &frame->image, options.most, notice, size);
    if (rc == 0)
        rc = kept_pictures_open(&pictures, &options);
    if (rc == -ENOMEM && lease->driver->device_bytes)
        rc = -ENOSPC;
    if (rc < 0) {
        crops_drain(crops);
        return rc;
    }
    pthread_mutex_lock(&crops->lock);
    crops->pictures = pictures;
    crops->depth = frames_in_flight(lease->driver);
    pthread_mutex_unlock(&crops->lock);
    return 0;
}

// --- life

static int open_jobs(struct crops *crops)
{
    const size_t most = (size_t)crops->most;
    for (int i = 0; i < FRAMES_IN_FLIGHT_MAX; i++) {
        struct crop_job *job = &crops->jobs[i];
        job->crops = crops;
        job->results = calloc(most, sizeof *job->results);
        job->elements = calloc(most, sizeof *job->elements);
        if (!job->results || !job->elements)
            return -ENOMEM;
    }
    return 0;
}

static void free_crops(struct crops *crops)
{
    for (int i = 0; i < FRAMES_IN_FLIGHT_MAX; i++) {
        free(crops->jobs[i].results);
        free(crops->jobs[i].elements);
    }
    pthread_cond_destroy(&crops->done);
    pthread_mutex_destroy(&crops->lock);
    free(crops);
}

static int crops_open(struct crops **ret, const struct subscription *subscription,
                      const struct device_lease *lease, struct event_queue *events)
{
    struct crops *crops = calloc(1, sizeof *crops);
    if (!crops)
        return -ENOMEM;
    crops->lease = lease;
    crops->events = events;
    crops->subscription = *subscription;
    crops->output = crops->subscription.output;
    crops->most = crops->output->config->capacity;
    crops->source.format = PIXEL_NONE;
    pthread_mutex_init(&crops->lock, NULL);
    pthread_cond_init(&crops->done, NULL);
    crop_requests_stop(crops->output->requests, false);
    int rc = open_jobs(crops);
    if (rc == 0)
        rc = -pthread_create(&crops->thread, NULL, run_crops, crops);
    if (rc < 0) {
        free_crops(crops);
        return rc;
    }
    *ret = crops;
    return 0;
}

static void crops_close(struct crops *crops)
{
    crops_drain(crops);
    crop_requests_stop(crops->output->requests, true);
    pthread_join(crops->thread, NULL);
    free_crops(crops);
}

// --- all of a camera

// Removes the crops of that output from the list and returns them; NULL: there are none.
static struct crops *take_crops(struct crops_list *list, const struct output *output)
{
    for (int i = 0; i < list->n; i++) {
        struct crops *crops = list->list[i].crops;
        if (crops->output != output)
            continue;
        list->list[i] = list->list[--list->n];
        return crops;
    }
    return NULL;
}

static void log_failure(const struct output *output, int rc)
{
    log_event(LOG_LEVEL_ERROR, "output=%s no thread: %s", output->config->name, strerror(-rc));
}

void crops_list_subscribe(struct crops_list *list, const struct subscriptions *subscriptions,
                          const struct device_lease *lease, struct event_queue *events)
{
    struct crops_list next = {0};
    for (int i = subscriptions->n_pictures; i < subscriptions->n_pools; i++) {
        const struct subscription *own = &subscriptions->list[i];
        struct crops_entry *entry = &next.list[next.n];
        int rc = 0;
        entry->of = subscriptions_find(subscriptions, own->output->config->crops.of);
        entry->crops = take_crops(list, own->output);
        if (!entry->crops)
            rc = crops_open(&entry->crops, own, lease, events);
        if (rc < 0)
            log_failure(own->output, rc);
        next.n += rc == 0;
    }
    crops_list_close(list);
    *list = next;
}

void crops_list_close(struct crops_list *list)
{
    while (list->n > 0)
        crops_close(list->list[--list->n].crops);
}

int crops_list_prepare(struct crops_list *list, const struct frame *frame, int num, int den,
                       char *notice, size_t size)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < list->n; i++)
        rc = crops_prepare(list->list[i].crops, frame, num, den, notice, size);
    return rc;
}

void crops_list_keep(struct crops_list *list, struct frame *frame)
{
    for (int i = 0; i < list->n; i++) {
        struct crops_entry *entry = &list->list[i];
        if (!entry->of || entry->of->ordinal == entry->ordinal)
            continue;
        entry->ordinal = entry->of->ordinal;
        crops_keep(entry->crops, frame);
    }
}

int64_t crops_list_keep_ns(const struct crops_list *list)
{
    int64_t longest_ns = 0;
    for (int i = 0; i < list->n; i++) {
        const int64_t ns = list->list[i].crops->output->config->crops.keep.ns;
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    return longest_ns;
}

void crops_list_drain(struct crops_list *list)
{
    for (int i = 0; i < list->n; i++)
        crops_drain(list->list[i].crops);
}
