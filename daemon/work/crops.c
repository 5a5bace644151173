#include "daemon/work/geometry.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/output/crop_requests.h"
#include "daemon/wire.h"

enum {
    ROW_BYTES = 256, // rows of copies are multiples of this
    // Copies beyond those kept: for jobs in progress, and the newest before the oldest is dropped.
    COPIES_MORE = FRAMES_IN_FLIGHT_MAX + 1,
};

// A picture on the device. Pictures on the host stay in the decoder's buffers, since it can have
// more; NVDEC's surfaces are few, so theirs are copied.
struct copy {
    struct image image;
    _Atomic bool busy;
};

struct crops {
    const struct device_lease *lease;
    struct event_queue *events;
    struct subscription subscription;
    struct output *output;
    int items; // of a batch
    struct crops *next;

    // The camera's thread:
    const struct output *of; // the output whose objects are shown; NULL: it is gone
    uint64_t ordinal;        // of that output: behind the last picture kept

    // The camera's thread changes these while no request is served:
    struct geometry geometry;    // no plan: elements cannot be made
    struct device_export memory; // of the copies; address NULL: there are none
    struct copy *copies;         // most + COPIES_MORE of them; NULL: pictures are on the host
    int most;                    // pictures kept

    pthread_mutex_t lock; // guards the next two; a decoder's lock may be taken under it
    int first, n;         // of the ring, the oldest first
    struct kept {
        struct frame frame;
        int64_t since_ns; // CLOCK_MONOTONIC
    } * kept;             // `most` of them; NULL: none can be kept

    // For the request being served:
    struct job job;
    struct frame frame;               // its picture
    struct result *result;            // the batch that it fills
    uint64_t first_sequence, claimed; // of the first batch; number of batches
    uint32_t epoch;                   // of the last batch
    int n_elements;                   // made of these:
    struct element elements[];        // `items` of them
};

// --- the kept pictures

// Lays out a copy at `base`. Returns its size in bytes.
static size_t lay_out_copy(struct image *image, const struct image *source, uint8_t *base)
{
    *image = *source;
    image->width = (source->width + ROW_BYTES - 1) / ROW_BYTES * ROW_BYTES;
    const size_t bytes = image_lay_out(image, base);
    image->width = source->width;
    return (bytes + ROW_BYTES - 1) / ROW_BYTES * ROW_BYTES;
}

// Returns the device memory of the copies, bytes; 0 if the pictures are on the host.
static size_t copies_need(const struct image *source, int most)
{
    struct image image;
    if (source->memory != MEMORY_CUDA)
        return 0;
    return lay_out_copy(&image, source, NULL) * (size_t)(most + COPIES_MORE);
}

static int open_copies(struct crops *crops, const struct image *source)
{
    const struct device_lease *lease = crops->lease;
    const int n = crops->most + COPIES_MORE;
    crops->copies = calloc((size_t)n, sizeof *crops->copies);
    if (!crops->copies)
        return -ENOMEM;
    if (!lease->driver->export_open)
        return -ENOTSUP;
    int rc = lease->driver->export_open(lease->backend, &crops->memory, EXPORT_DESCRIPTOR,
                                        copies_need(source, crops->most));
    uint8_t *base = crops->memory.address;
    for (int i = 0; rc == 0 && i < n; i++)
        base += lay_out_copy(&crops->copies[i].image, source, base);
    return rc;
}

// For pictures like `source`: at most `most` at once. Returns 0, -ENOMEM, -ENOTSUP or -EIO.
static int open_kept(struct crops *crops, const struct image *source, int most)
{
    crops->most = most;
    crops->kept = calloc((size_t)most, sizeof *crops->kept);
    if (!crops->kept)
        return -ENOMEM;
    return source->memory == MEMORY_CUDA ? open_copies(crops, source) : 0;
}

// Returns the i-th oldest. Under lock.
static struct kept *kept_at(struct crops *crops, int i)
{
    return &crops->kept[(crops->first + i) % crops->most];
}

static void drop_oldest(struct crops *crops)
{
    frame_release(&kept_at(crops, 0)->frame);
    crops->first = (crops->first + 1) % crops->most;
    crops->n--;
}

static void drop_old(struct crops *crops)
{
    const int64_t since_ns = monotonic_ns() - crops->output->config->crops.keep.ns;
    while (crops->n > 0 && kept_at(crops, 0)->since_ns < since_ns)
        drop_oldest(crops);
}

static void close_kept(struct crops *crops)
{
    while (crops->n > 0)
        drop_oldest(crops);
    if (crops->memory.address)
        crops->lease->driver->export_close(crops->lease->backend, &crops->memory);
    free(crops->copies);
    free(crops->kept);
    crops->memory = (struct device_export){0};
    crops->copies = NULL;
    crops->kept = NULL;
}

static void release_copy(void *owner)
{
    struct copy *copy = owner;
    atomic_store(&copy->busy, false);
}

static int copy_frame(struct crops *crops, const struct frame *frame, struct frame *ret)
{
    const struct device_lease *lease = crops->lease;
    struct copy *copy = crops->copies;
    while (atomic_load(&copy->busy)) // at least one is free
        copy++;
    int rc = lease->driver->picture_copy(lease->backend, &copy->image, &frame->image);
    if (rc < 0)
        return rc;
    atomic_store(&copy->busy, true);
    *ret = *frame;
    ret->image = copy->image;
    ret->owner = copy;
    ret->release = release_copy;
    return 0;
}

// Camera's thread. The caller still owns the picture.
static void keep_picture(struct crops *crops, struct frame *frame)
{
    struct frame kept;
    int rc = crops->copies ? copy_frame(crops, frame, &kept) : frame_share(frame, &kept);
    if (rc == -EIO)
        device_failed(crops->lease, rc);
    if (rc < 0)
        return;
    pthread_mutex_lock(&crops->lock);
    drop_old(crops);
    if (crops->n == crops->most)
        drop_oldest(crops);
    *kept_at(crops, crops->n++) = (struct kept){kept, monotonic_ns()};
    pthread_mutex_unlock(&crops->lock);
}

// Shares the picture with that pts_ns and epoch in crops->frame. False: it is not kept any more.
static bool find_picture(struct crops *crops, const struct frame_info *info)
{
    bool found = false;
    pthread_mutex_lock(&crops->lock);
    drop_old(crops);
    for (int i = crops->n - 1; i >= 0 && !found; i--) {
        struct frame *frame = &kept_at(crops, i)->frame;
        found = frame->info.pts_ns == info->pts_ns && frame->info.epoch == info->epoch &&
                frame_share(frame, &crops->frame) == 0;
    }
    pthread_mutex_unlock(&crops->lock);
    return found;
}

// --- the end of a request

// Any thread. The caller's last access to the request.
static void end_request(struct crops *crops)
{
    while (crops->n_elements > 0)
        op_finish(&crops->elements[--crops->n_elements].op);
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
    pool_complete(output->pool, crops->result, 0, crops->n_elements, status);
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
        struct element *element = &crops->elements[crops->n_elements];
        params.warp.crop = request->box[i].rect;
        if (op_init(&element->op, &params, &crops->geometry.source) < 0)
            continue;
        if (!op_replaces(&element->op, whole_of(crops))) {
            op_finish(&element->op);
            continue;
        }
        element->region = request->box[i].rect;
        element->name = request->region;
        request->box[crops->n_elements++] = request->box[i];
    }
}

static void describe_batch(struct crops *crops, const struct crop_request *request)
{
    struct result *result = crops->result;
    const struct elements elements = {crops->elements, crops->n_elements};
    struct frame_info info = crops->frame.info;
    if (crops->claimed == 0)
        crops->first_sequence = request->sequence;
    const bool new_epoch = crops->claimed == 0 || crops->epoch != info.epoch;
    info.flags &= ~(uint32_t)FRAMED_FLAG_FIRST_OF_EPOCH;
    for (int i = 0; i < crops->n_elements; i++) {
        result->item[i].new_epoch = new_epoch;
        result->item[i].lost = request->sequence - crops->first_sequence - crops->claimed;
    }
    elements_describe(result, 0, &elements, crops->output, &info, request->sequence,
                      request->sequence);
    for (int i = 0; i < crops->n_elements; i++) {
        result->item[i].parent_sequence = request->parent_sequence;
        result->item[i].object = request->box[i].object;
    }
    crops->epoch = info.epoch;
    crops->claimed++;
    result->batch_sequence = request->sequence;
    result->closed_by = crops->n_elements == crops->items ? CLOSED_FULL : CLOSED_ALL;
    result->opened_ns = result->closed_ns = monotonic_ns();
}

// Claims a batch for the job's elements; the rest of it is empty. Returns 0, or as pool_claim.
static int claim_batch(struct crops *crops, const struct crop_request *request)
{
    static const _Atomic bool never = false;
    struct output *output = crops->output;
    struct pool_request claim = {
        .size = whole_of(crops)->dst_bytes,
        .items = crops->items,
        .ledger = &output->ledger,
        .stop = &never,
    };
    int rc = pool_claim(output->pool, &claim, &crops->result);
    if (rc < 0)
        return rc;
    crops->frame.rate_num = crops->frame.rate_den = 0; // batches of crops have no rate
    crops->result->format =
        elements_format(whole_of(crops), output, &crops->frame, crops->result->data);
    describe_batch(crops, request);
    if (crops->n_elements < crops->items)
        pool_complete(output->pool, crops->result, crops->n_elements,
                      crops->items - crops->n_elements, -ECANCELED);
    return 0;
}

static void submit_job(struct crops *crops)
{
    struct job_result *results = crops->geometry.results;
    const struct elements elements = {crops->elements, crops->n_elements};
    memset(results, 0, (size_t)crops->items * sizeof *results);
    elements_fill(results, &elements, crops->result, 0);
    for (int i = 0; i < elements.n; i++)
        results[i].op = &elements.list[i].op;
    crops->job = (struct job){
        .src = crops->frame.image,
        .results = results,
        .n = crops->items,
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
    int rc = -ETIME;
    if (find_picture(crops, &request->frame) &&
        !frame_is_late(&crops->frame.info, crops->output->config->max_age.ns)) {
        if (crops->geometry.plan)
            make_elements(crops, request);
        rc = crops->n_elements > 0 ? claim_batch(crops, request) : -ENOSPC;
    }
    if (rc == 0) {
        submit_job(crops);
        return;
    }
    ledger_lose(&crops->output->ledger, claim_loss(rc, false));
    end_request(crops);
}

// --- for pictures of one geometry

static void drain(struct crops *crops)
{
    crop_requests_drain(crops->output->requests);
    close_kept(crops);
    geometry_close(&crops->geometry);
}

static int prepare(struct crops *crops, const struct image *source, int num, int den,
                   char notice[NOTICE_MAX])
{
    const int most = budget_kept_pictures(&crops->output->config->crops, num, den);
    if (geometry_is_alike(&crops->geometry.source, source))
        return 0;
    drain(crops);
    int rc = geometry_open(&crops->geometry, source, copies_need(source, most), NULL, notice);
    if (rc == 0)
        rc = open_kept(crops, source, most);
    if (rc == -ENOMEM && crops->lease->driver->device_bytes)
        rc = -ENOSPC;
    if (rc < 0)
        drain(crops);
    else
        crop_requests_serve(crops->output->requests, serve, crops);
    return rc;
}

// --- all of a camera

static struct crops *open_crops(const struct subscription *subscription,
                                const struct device_lease *lease, struct event_queue *events)
{
    const int items = subscription->output->config->capacity;
    struct crops *crops = calloc(1, sizeof *crops + (size_t)items * sizeof *crops->elements);
    if (!crops)
        return NULL;
    crops->lease = lease;
    crops->events = events;
    crops->subscription = *subscription;
    crops->output = subscription->output;
    crops->items = items;
    crops->geometry =
        (struct geometry){.lease = lease, .list = &crops->subscription, .n_outputs = 1};
    pthread_mutex_init(&crops->lock, NULL);
    return crops;
}

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
        pthread_mutex_destroy(&crops->lock);
        free(crops);
    }
}

int crops_prepare(struct crops *list, const struct image *source, int num, int den,
                  char notice[NOTICE_MAX])
{
    int rc = 0;
    for (; list && rc == 0; list = list->next)
        rc = prepare(list, source, num, den, notice);
    return rc;
}

void crops_keep(struct crops *list, struct frame *frame)
{
    for (; list; list = list->next) {
        if (!list->of || list->of->ordinal == list->ordinal || !list->kept)
            continue;
        list->ordinal = list->of->ordinal;
        keep_picture(list, frame);
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
