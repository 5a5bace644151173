#include "daemon/work/transform.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/device/budget.h"
#include "daemon/work/claim.h"
#include "daemon/work/crops.h"
#include "daemon/work/geometry.h"

static const int64_t NOMINAL_NS = 40000000; // between frames of a stream without a rate
static const int64_t BURST_NS = 250000000;  // that frames in a row may wait beyond their patience
static const int64_t SHORT_DELAY_NS = 10000000; // shorter ones delay no frame of a nominal rate
static const int64_t RETRY_NS = 1000000000;     // between tries to get a backend's buffers
static const int64_t RESUME_NS = 1000000000;    // that a batch waits for one camera's backend, once

// One frame in the backend: the job, its source, and the result of each output that takes it.
struct in_flight {
    struct job job;
    struct frame frame;
    struct result *result[SUBSCRIPTIONS_MAX]; // NULL: the output does not take the frame
    int first[SUBSCRIPTIONS_MAX];             // first item in that result
    bool is_viewed;                           // all of them are for viewers
    struct transform *transform;
    bool busy; // under the transform's lock
};

struct transform {
    struct transform_context context;
    struct subscriptions *subscriptions; // under lock if another thread reads them
    bool attached;                       // *lease is acquired
    struct geometry geometry;            // of the last picture
    struct crops_list crops;
    struct rate rate;  // the camera's `fps`
    uint64_t pictures; // offered, except lost ones
    uint32_t epoch;
    int64_t waited_ns; // excess of the last frames over their patience; shorter waits reduce it
    int64_t patient_until_ns; // CLOCK_MONOTONIC: until then frames wait instead of being lost
    int64_t retry_ns;         // earliest next try to open a plan after a failure
    char notice[256];
    bool noticed; // notice was returned
    bool stuck;   // under lock: a batch waited for the backend in vain, and no job has ended since
    pthread_mutex_t lock;
    pthread_cond_t room;      // an entry of in_flight became free, or transform_wake
    _Atomic bool job_failed;  // a job failed on a device that goes on
    int64_t job_failed_ns;    // when the camera's thread last saw that
    _Atomic bool interrupted; // waits for clients end: *stop, or the device has failed
    struct in_flight in_flight[FRAMES_IN_FLIGHT_MAX];
};

int transform_open(struct transform **ret, const struct transform_context *context)
{
    pthread_condattr_t attributes;
    struct transform *transform = calloc(1, sizeof *transform);
    if (!transform)
        return -ENOMEM;
    transform->context = *context;
    transform->subscriptions = context->subscriptions;
    transform->rate.fps = context->fps;
    for (int i = 0; i < FRAMES_IN_FLIGHT_MAX; i++)
        transform->in_flight[i].transform = transform;
    pthread_mutex_init(&transform->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&transform->room, &attributes);
    pthread_condattr_destroy(&attributes);
    crops_list_subscribe(&transform->crops, context->subscriptions, context->lease,
                         context->events);
    *ret = transform;
    return 0;
}

// Under OVERFLOW_WAIT, waits until each batch has at most `parked` pictures of this camera.
static void wait_for_batches(const struct transform *transform, int parked)
{
    const struct subscriptions *outputs = transform->subscriptions;
    for (int i = 0; i < outputs->n_pictures; i++) {
        if (!outputs->list[i].output->parent)
            continue;
        stage_enter(transform->context.stages, STAGE_SUBMIT, STAGE_NO_LIMIT);
        batch_wait(&outputs->list[i].output->share, parked, &transform->interrupted);
        stage_enter(transform->context.stages, STAGE_SUBMIT, 0);
    }
}

// Loses the parked pictures: they have the old geometry.
static void withdraw_parked(const struct transform *transform)
{
    const struct subscriptions *outputs = transform->subscriptions;
    const enum loss reason = atomic_load(transform->context.stop)   ? LOSS_STOPPING
                             : atomic_load(&transform->interrupted) ? LOSS_BACKEND
                                                                    : LOSS_OVERFLOW;
    for (int i = 0; i < outputs->n_pictures; i++)
        if (outputs->list[i].output->parent)
            batch_withdraw(&outputs->list[i].output->share, reason);
}

// Leaves the pictures kept for crops alone.
static void drain_pictures(struct transform *transform)
{
    wait_for_batches(transform, 0);
    withdraw_parked(transform);
    geometry_close(&transform->geometry, transform->context.lease);
    transform->retry_ns = 0;
}

void transform_drain(struct transform *transform)
{
    drain_pictures(transform);
    crops_list_drain(&transform->crops);
}

static void attach_output(struct transform *transform, struct output *output)
{
    const struct device_lease *lease = transform->context.lease;
    pool_add_backend(output->pool, lease->driver, lease->backend);
    if (!output->parent)
        return;
    output->share.producer = transform;
    batch_join(&output->share);
}

static void detach_output(const struct transform *transform, struct output *output)
{
    pool_remove_backend(output->pool, transform->context.lease->backend);
}

void transform_subscribe(struct transform *transform, struct subscriptions *next)
{
    struct subscriptions *before = transform->subscriptions;
    drain_pictures(transform);
    crops_list_subscribe(&transform->crops, next, transform->context.lease,
                         transform->context.events);
    pthread_mutex_lock(&transform->lock);
    transform->subscriptions = next;
    pthread_mutex_unlock(&transform->lock);
    for (int i = 0; transform->attached && i < next->n_pools; i++)
        if (!subscriptions_have(before, next->list[i].output))
            attach_output(transform, next->list[i].output);
    for (int i = 0; transform->attached && i < before->n_pools; i++)
        if (!subscriptions_have(next, before->list[i].output))
            detach_output(transform, before->list[i].output);
}

void transform_close(struct transform *transform)
{
    if (!transform)
        return;
    transform_drain(transform);
    crops_list_close(&transform->crops);
    pthread_cond_destroy(&transform->room);
    pthread_mutex_destroy(&transform->lock);
    free(transform);
}

static void interrupt(void *opaque)
{
    struct transform *transform = opaque;
    atomic_store(&transform->interrupted, true);
    pthread_mutex_lock(&transform->lock);
    for (int i = 0; i < transform->subscriptions->n_pictures; i++) {
        struct output *output = transform->subscriptions->list[i].output;
        pool_wake(output->pool);
        if (output->parent)
            batch_wake(&output->share);
    }
    pthread_cond_broadcast(&transform->room);
    pthread_mutex_unlock(&transform->lock);
}

void transform_wake(struct transform *transform)
{
    interrupt(transform);
}

void transform_attach(struct transform *transform)
{
    const struct transform_context *context = &transform->context;
    for (int i = 0; i < transform->subscriptions->n_pools; i++)
        attach_output(transform, transform->subscriptions->list[i].output);
    transform->attached = true;
    atomic_store(&transform->interrupted, false);
    if (atomic_load(context->stop)) // set before transform_wake is called
        atomic_store(&transform->interrupted, true);
    device_on_failure(context->lease, interrupt, transform);
}

void transform_detach(struct transform *transform)
{
    transform_drain(transform);
    for (int i = 0; transform->attached && i < transform->subscriptions->n_pools; i++)
        detach_output(transform, transform->subscriptions->list[i].output);
    transform->attached = false;
}

int64_t transform_keeps_ns(const struct transform *transform)
{
    return crops_list_keep_ns(&transform->crops);
}

const char *transform_notice(struct transform *transform)
{
    if (transform->noticed || !transform->notice[0])
        return NULL;
    transform->noticed = true;
    return transform->notice;
}

// A delay while still catching up used up that much time and brings more frames: twice `ns`.
void transform_delayed(struct transform *transform, int64_t ns)
{
    int64_t now = monotonic_ns();
    if (ns < SHORT_DELAY_NS)
        return;
    if (transform->patient_until_ns > now)
        transform->patient_until_ns += 2 * ns;
    else
        transform->patient_until_ns = now + ns + BURST_NS;
}

static void release_in_flight(struct in_flight *flight)
{
    struct transform *transform = flight->transform;
    frame_release(&flight->frame);
    memset(flight->result, 0, sizeof flight->result);
    pthread_mutex_lock(&transform->lock);
    flight->busy = false;
    transform->stuck = false;
    pthread_cond_signal(&transform->room);
    pthread_mutex_unlock(&transform->lock);
}

static struct in_flight *find_free(struct transform *transform)
{
    const int depth = frames_in_flight(transform->context.lease->driver);
    for (int i = 0; i < depth; i++)
        if (!transform->in_flight[i].busy)
            return &transform->in_flight[i];
    return NULL;
}

static bool any_waits(const struct subscriptions *outputs)
{
    for (int i = 0; i < outputs->n_pictures; i++)
        if (outputs->list[i].output->config->overflow == OVERFLOW_WAIT)
            return true;
    return false;
}

// Returns how long a frame may wait for the backend. With waits of half an interval, a camera at
// its nominal rate never falls behind.
static int64_t patience_of(const struct subscriptions *outputs, int rate_num, int rate_den)
{
    if (any_waits(outputs))
        return INT64_MAX;
    int64_t interval = rate_num > 0 ? INT64_C(1000000000) * rate_den / rate_num : NOMINAL_NS;
    return interval < NOMINAL_NS * 5 ? interval / 2 : NOMINAL_NS * 5 / 2;
}

// Waits until an entry of in_flight is free, the transform is woken to stop, or CLOCK_MONOTONIC
// reaches `until_ns`.
static struct in_flight *wait_for_free(struct transform *transform, int64_t until_ns)
{
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    struct in_flight *flight;
    while (!(flight = find_free(transform)) && !atomic_load(transform->context.stop) &&
           !atomic_load(&transform->interrupted))
        if (pthread_cond_timedwait(&transform->room, &transform->lock, &until) != 0)
            return find_free(transform);
    return flight;
}

static struct in_flight *take_in_flight(struct transform *transform, int64_t until_ns)
{
    pthread_mutex_lock(&transform->lock);
    struct in_flight *flight = wait_for_free(transform, until_ns);
    if (flight)
        flight->busy = true;
    pthread_mutex_unlock(&transform->lock);
    return flight;
}

// NULL: the backend is busy for longer than the frame may wait. A burst may wait longer (packets
// read while probing come all at once, and other cameras start too): the frames behind it are still
// in the socket.
static struct in_flight *begin_in_flight(struct transform *transform, int64_t patience_ns)
{
    int64_t now = monotonic_ns(), until = INT64_MAX;
    const bool is_patient = now < transform->patient_until_ns;
    if (patience_ns < INT64_MAX)
        until = now + patience_ns + BURST_NS - transform->waited_ns;
    if (until < transform->patient_until_ns)
        until = transform->patient_until_ns;
    struct in_flight *flight = take_in_flight(transform, until);
    if (patience_ns < INT64_MAX && !is_patient) {
        int64_t waited = transform->waited_ns + monotonic_ns() - now - patience_ns;
        transform->waited_ns = waited < 0 ? 0 : waited < BURST_NS ? waited : BURST_NS;
    }
    return flight;
}

// Any thread. Reports a failure of the device itself to the devices, and returns 0. Returns any
// other error as it was, for the caller.
static int report_failure(const struct transform *transform, int rc)
{
    if (rc != -EIO && rc != -ENODEV)
        return rc;
    device_failed(transform->context.lease, rc);
    return 0;
}

static void complete(struct in_flight *flight, int status)
{
    struct transform *transform = flight->transform;
    int64_t now = monotonic_ns();
    stage_job_ends(transform->context.stages, now);
    for (int i = 0; i < transform->subscriptions->n_pictures; i++) {
        struct output *output = transform->subscriptions->list[i].output;
        if (!flight->result[i])
            continue;
        if (status == 0) {
            latency_observe(&output->latency, now - flight->frame.info.received_ns);
            latency_observe(&output->processing, now - flight->frame.info.decoded_ns);
        }
        const int n = transform->geometry.first[i + 1] - transform->geometry.first[i];
        if (output->parent)
            batch_complete(&output->share, flight->result[i], flight->first[i], n, status);
        else
            pool_complete(output->pool, flight->result[i], 0, n, status);
        event_post(transform->context.events, &output_owner(output)->ready);
    }
    release_in_flight(flight);
}

// Backend thread.
static void job_done(struct job *job, int status)
{
    struct in_flight *flight = job->opaque;
    const struct frame_info *info = &flight->frame.info;
    if (!flight->is_viewed) {
        histogram_observe(flight->transform->context.decode, info->decoded_ns - info->received_ns);
        histogram_observe(flight->transform->context.process, monotonic_ns() - info->decoded_ns);
    }
    if (status == -EREMOTEIO)
        atomic_store(&flight->transform->job_failed, true);
    report_failure(flight->transform, status);
    complete(flight, status);
}

static void begin_job(struct in_flight *flight)
{
    const struct geometry *geometry = &flight->transform->geometry;
    const size_t at = (size_t)(flight - flight->transform->in_flight) * (size_t)geometry->n;
    struct job_result *results = geometry->results + at;
    memset(results, 0, (size_t)geometry->n * sizeof *results);
    flight->is_viewed = false;
    flight->job = (struct job){
        .src = flight->frame.image,
        .results = results,
        .n = geometry->n,
        .done = job_done,
        .opaque = flight,
    };
}

static struct elements elements_of(const struct transform *transform, int subscription)
{
    const struct geometry *geometry = &transform->geometry;
    const int at = geometry->first[subscription];
    return (struct elements){geometry->elements + at, geometry->first[subscription + 1] - at};
}

// Makes the job fill the items from `first` on with the elements of that subscription.
static void add_elements(struct in_flight *flight, int subscription, struct result *result,
                         int first)
{
    const struct elements elements = elements_of(flight->transform, subscription);
    struct job_result *to = flight->job.results + flight->transform->geometry.first[subscription];
    flight->result[subscription] = result;
    flight->first[subscription] = first;
    for (int i = 0; i < elements.n; i++) {
        const struct op *op = &elements.list[i].op;
        struct item *item = &result->item[first + i];
        to[i] = (struct job_result){
            .data = (uint8_t *)result->data + (size_t)(first + i) * op->dst_bytes,
            .memory = result->memory,
            .filled = item->valid_op == op->serial,
        };
        item->valid_op = op->serial;
    }
}

static int start_job(struct in_flight *flight)
{
    const struct transform *transform = flight->transform;
    stage_job_begins(transform->context.stages);
    int rc = transform->context.lease->driver->submit(transform->geometry.plan, &flight->job);
    if (rc < 0)
        complete(flight, rc);
    return rc;
}

// Claims items for the job, of shares in batches or of the other outputs. False: claimed none.
static bool claim_outputs(struct in_flight *flight, struct claim *claim, bool shares)
{
    const struct transform *transform = flight->transform;
    bool any = false;
    for (int i = 0; i < transform->subscriptions->n_pictures; i++) {
        const struct subscription *subscription = &transform->subscriptions->list[i];
        const struct elements elements = elements_of(transform, i);
        struct result *result;
        if (subscription->output->demand || (subscription->output->parent != NULL) != shares)
            continue;
        int first = claim_frame(subscription, &elements, claim, &result);
        if (first < 0)
            continue;
        add_elements(flight, i, result, first);
        any = true;
    }
    return any;
}

// Claims results for viewers, behind all others: they never wait. False: claimed none.
static bool claim_viewed(struct in_flight *flight, struct claim *claim)
{
    const struct transform *transform = flight->transform;
    bool any = false;
    for (int i = 0; i < transform->subscriptions->n_pictures; i++) {
        const struct subscription *subscription = &transform->subscriptions->list[i];
        struct output *output = subscription->output;
        const struct elements elements = elements_of(transform, i);
        struct result *result;
        if (!output->demand)
            continue;
        if (claim_demanded(subscription, &elements, claim, transform->pictures, &result) == 0) {
            add_elements(flight, i, result, 0);
            any = true;
        } else if (atomic_load(&output->demand->refused)) {
            event_post(transform->context.events, &output->ready);
        }
    }
    return any;
}

// Offers the frame in `flight` to every output, as one job. Batches come last: other cameras wait
// for items claimed there, and a client of an output may take its time.
static int submit(struct transform *transform, struct in_flight *flight, int rate_num, int rate_den,
                  bool thinned)
{
    rate_limit(&transform->rate, &rate_num, &rate_den);
    struct claim claim = {
        .frame = &flight->frame,
        .rate_num = rate_num,
        .rate_den = rate_den,
        .wait_until_ns = transform->patient_until_ns,
        .interrupted = &transform->interrupted,
        .stop = transform->context.stop,
        .stages = transform->context.stages,
    };
    begin_job(flight);
    bool wanted = !thinned && claim_outputs(flight, &claim, false);
    wanted |= !thinned && claim_outputs(flight, &claim, true);
    flight->is_viewed = !wanted;
    wanted |= claim_viewed(flight, &claim);
    transform_delayed(transform, claim.opening_ns);
    if (!thinned)
        crops_list_keep(&transform->crops, &flight->frame);
    if (wanted)
        return start_job(flight);
    release_in_flight(flight);
    return 0;
}

static int find_subscription(const struct subscriptions *outputs, const struct batch_member *share)
{
    int i = 0;
    while (&outputs->list[i].output->share != share)
        i++;
    return i;
}

// The collector serves all cameras of the batch: it waits for a hung backend once, not for each
// picture.
static struct in_flight *resume_in_flight(struct transform *transform)
{
    pthread_mutex_lock(&transform->lock);
    const int64_t until_ns = transform->stuck ? 0 : monotonic_ns() + RESUME_NS;
    struct in_flight *flight = wait_for_free(transform, until_ns);
    if (flight)
        flight->busy = true;
    else
        transform->stuck = true;
    pthread_mutex_unlock(&transform->lock);
    return flight;
}

void transform_resume(struct batch_grant *grant)
{
    struct transform *transform = grant->member->producer;
    const int i = find_subscription(transform->subscriptions, grant->member);
    const struct elements elements = elements_of(transform, i);
    struct in_flight *flight = resume_in_flight(transform);
    if (!flight) {
        const bool stops = atomic_load(transform->context.stop);
        batch_complete(grant->member, grant->result, grant->first, elements.n,
                       stops ? -ECANCELED : -ETIMEDOUT);
        frame_release(&grant->parked.frame);
        return;
    }
    flight->frame = grant->parked.frame;
    begin_job(flight);
    claim_describe(grant->result, grant->first, &elements, transform->subscriptions->list[i].output,
                   &flight->frame.info, grant->parked.sequence, grant->parked.ordinal);
    add_elements(flight, i, grant->result, grant->first);
    report_failure(transform, start_job(flight));
}

// Drains on failure: the device must not hold a part of it.
static int open_geometry(struct transform *transform, const struct frame *frame)
{
    int num = frame->rate_num, den = frame->rate_den;
    char *notice = transform->notice;
    int rc = geometry_open(&transform->geometry, transform->context.lease, transform->subscriptions,
                           frame, notice, sizeof transform->notice);
    rate_limit(&transform->rate, &num, &den);
    if (rc == 0)
        rc = crops_list_prepare(&transform->crops, frame, num, den, notice,
                                sizeof transform->notice);
    if (rc < 0)
        transform_drain(transform);
    return rc;
}

// Closes the plan of a failed job; the other cameras of the device go on.
static void close_failed_plan(struct transform *transform)
{
    drain_pictures(transform);
    const int64_t now = monotonic_ns();
    const bool again = now < transform->job_failed_ns + RETRY_NS;
    transform->job_failed_ns = now;
    transform->retry_ns = again ? now + RETRY_NS : 0;
}

// Opens ops and a plan if the source differs from the last one. -EAGAIN: opening failed less than
// RETRY_NS ago.
static int update_geometry(struct transform *transform, const struct frame *frame)
{
    const bool failed = atomic_exchange(&transform->job_failed, false);
    if (failed)
        close_failed_plan(transform);
    const int64_t begun_ns = monotonic_ns();
    if (geometry_fits(&transform->geometry, &frame->image))
        return 0;
    if (begun_ns < transform->retry_ns)
        return -EAGAIN;
    drain_pictures(transform);
    char before[sizeof transform->notice];
    strcpy(before, transform->notice);
    int rc = open_geometry(transform, frame);
    transform->noticed &= rc == 0 && !failed && strcmp(before, transform->notice) == 0;
    transform->retry_ns = rc < 0 ? monotonic_ns() + RETRY_NS : 0;
    if (failed && rc == 0)
        snprintf(transform->notice, sizeof transform->notice,
                 "backend %s: a job failed, its plan was opened again",
                 transform->context.lease->driver->name);
    transform_delayed(transform, monotonic_ns() - begun_ns);
    return rc;
}

// Timestamps may restart in a new epoch.
static void update_epoch(struct transform *transform, uint32_t epoch)
{
    if (transform->epoch == epoch)
        return;
    transform->epoch = epoch;
    rate_restart(&transform->rate);
    for (int i = 0; i < transform->subscriptions->n; i++)
        rate_restart(&transform->subscriptions->list[i].output->rate);
}

// Offers a frame beyond the camera's `fps` to viewers, without waiting for the backend.
static int submit_thinned(struct transform *transform, struct frame *frame)
{
    const struct subscriptions *outputs = transform->subscriptions;
    const int n = outputs->n_pictures;
    struct in_flight *flight = NULL;
    stats_outputs_lose(outputs, LOSS_THINNED);
    claim_lost(outputs, LOSS_THINNED);
    if (n > 0 && outputs->list[n - 1].output->demand && update_geometry(transform, frame) == 0)
        flight = take_in_flight(transform, 0);
    if (!flight) {
        frame_release(frame);
        return 0;
    }
    flight->frame = *frame;
    *frame = (struct frame){0};
    return report_failure(transform, submit(transform, flight, 0, 0, true));
}

int transform_submit(struct transform *transform, struct frame *frame)
{
    const int rate_num = frame->rate_num, rate_den = frame->rate_den;
    const struct scene_record *record;
    struct in_flight *flight = NULL;
    enum loss reason;
    int rc = 0;

    if (frame->lost) {
        reason = frame->refused ? LOSS_CONFIG : LOSS_DAMAGED;
        claim_lost(transform->subscriptions, reason);
        stats_outputs_lose(transform->subscriptions, reason);
        return 0;
    }
    update_epoch(transform, frame->info.epoch);
    transform->pictures++;
    if (!rate_keeps(&transform->rate, frame->info.pts_ns))
        return submit_thinned(transform, frame);
    stage_enter(transform->context.stages, STAGE_ANALYSE, 0);
    record = scene_observe(transform->context.scene, frame);
    stats_outputs_offer(transform->subscriptions, transform->context.events, &frame->info, record,
                        transform->context.stop);
    stage_enter(transform->context.stages, STAGE_SUBMIT, 0);
    reason = LOSS_BACKEND;
    rc = update_geometry(transform, frame);
    if (rc < 0)
        goto lost;
    wait_for_batches(transform, BATCH_PARKED_WAIT - 1);
    flight = begin_in_flight(transform, patience_of(transform->subscriptions, rate_num, rate_den));
    reason = atomic_load(transform->context.stop)   ? LOSS_STOPPING
             : atomic_load(&transform->interrupted) ? LOSS_BACKEND
                                                    : LOSS_BACKEND_BUSY;
    if (!flight)
        goto lost;
    flight->frame = *frame;
    *frame = (struct frame){0};
    return report_failure(transform, submit(transform, flight, rate_num, rate_den, false));
lost:
    frame_release(frame);
    claim_lost(transform->subscriptions, reason);
    return rc == -EAGAIN ? 0 : report_failure(transform, rc);
}

// --- the thread of a batch

struct collector {
    struct output *output;
    struct event_queue *events;
    pthread_t thread;
    _Atomic bool ended;
};

static void *collect(void *opaque)
{
    struct collector *collector = opaque;
    struct batch_grant grant;
    pthread_setname_np(pthread_self(), "batch");
    while (batch_take(collector->output->batch, &grant) == 0) {
        if (grant.moved)
            pool_close_unused_regions(collector->output->pool);
        if (grant.member)
            transform_resume(&grant);
        else
            event_post(collector->events, &collector->output->ready);
    }
    atomic_store(&collector->ended, true);
    return NULL;
}

int collector_open(struct collector **ret, struct output *output, struct event_queue *events)
{
    struct collector *collector = malloc(sizeof *collector);
    if (!collector)
        return -ENOMEM;
    *collector = (struct collector){.output = output, .events = events};
    int rc = pthread_create(&collector->thread, NULL, collect, collector);
    if (rc != 0) {
        free(collector);
        return -rc;
    }
    *ret = collector;
    return 0;
}

bool collector_stop(struct collector *collector)
{
    if (!collector)
        return true;
    batch_stop(collector->output->batch);
    return atomic_load(&collector->ended);
}

void collector_close(struct collector *collector)
{
    if (!collector)
        return;
    collector_stop(collector);
    pthread_join(collector->thread, NULL);
    free(collector);
}
