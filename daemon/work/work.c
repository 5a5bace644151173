#include "daemon/work/work.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/device/budget.h"
#include "daemon/work/geometry.h"

static const int64_t NOMINAL_NS = 40000000; // between frames of a stream without a rate
static const int64_t BURST_NS = 250000000;  // that frames in a row may wait beyond their patience
static const int64_t SHORT_DELAY_NS = 10000000; // shorter ones delay no frame of a nominal rate
static const int64_t RETRY_NS = 1000000000;     // between tries to get a backend's buffers
static const int64_t RESUME_NS = 1000000000;    // that a batch waits for one camera's backend, once

enum { SETS = FRAMES_IN_FLIGHT_MAX + 1 }; // the present one, and those that jobs still use

// One frame in the backend: the job, its source, and the result of each output that takes it.
struct in_flight {
    struct job job;
    struct frame frame;
    struct result *result[SUBSCRIPTIONS_MAX]; // NULL: the output does not take the frame
    int first[SUBSCRIPTIONS_MAX];             // first item in that result
    bool is_viewed;                           // all of them are for viewers
    struct camera_work *work;
    _Atomic(struct geometry *) set; // NULL: the entry is free
    _Atomic int holds;              // by the job, and by the call that submits it
};

struct camera_work {
    struct work_context context;
    struct crops *crops; // a list
    struct frame shape;  // the last frame that a geometry was opened for, without its picture
    struct rate rate;    // the camera's `fps`
    uint64_t pictures;   // offered, except lost ones
    uint32_t epoch;
    int64_t waited_ns; // excess of the last frames over their patience; shorter waits reduce it
    int64_t patient_until_ns; // CLOCK_MONOTONIC: until then frames wait instead of being lost
    int64_t retry_ns;         // earliest next try to open a geometry after a failure
    char notice[NOTICE_MAX], noticed[NOTICE_MAX]; // the present one, and the last returned
    _Atomic bool job_failed;                      // a job failed on a device that goes on
    int64_t job_failed_ns;                        // when the camera's thread last saw that
    _Atomic bool interrupted; // waits for clients end: *stop, or the device has failed
    pthread_mutex_t lock;
    pthread_cond_t room; // an entry of in_flight became free, or work_wake
    _Atomic int waiters; // for `room`; changed under lock
    // A ring, the newest is the present one. Changed by the camera's thread, under lock.
    struct geometry sets[SETS]; // closed: no picture has come, or opening failed
    int first, n;
    _Atomic bool stuck; // a batch waited for the backend in vain, and no job has ended since
    struct in_flight in_flight[FRAMES_IN_FLIGHT_MAX];
};

// --- sets of outputs

static struct geometry *set_at(struct camera_work *work, int i)
{
    return &work->sets[(work->first + i) % SETS];
}

static struct geometry *present(struct camera_work *work)
{
    return set_at(work, work->n - 1);
}

static struct output *output_of(const struct geometry *set, int subscription)
{
    return set->outputs->list[subscription].output;
}

// Attaches, or detaches, the outputs of `list` that `others` (NULL: none) does not have.
static void change_backend(struct camera_work *work, const struct subscriptions *list,
                           const struct subscriptions *others, bool attaches)
{
    const struct device_lease *lease = work->context.lease;
    for (int i = 0; lease->device && i < list->n_pools; i++) {
        struct output *output = list->list[i].output;
        if (others && subscriptions_have(others, output))
            continue;
        if (!attaches) {
            pool_remove_backend(output->pool, lease->backend);
            continue;
        }
        pool_add_backend(output->pool, lease->driver, lease->backend);
        if (output->parent) {
            output->share.producer = work;
            batch_join(&output->share);
        }
    }
}

// True if a job uses the set, or is being started.
static bool is_used(const struct camera_work *work, const struct geometry *set)
{
    bool used = false;
    for (int i = 0; i < FRAMES_IN_FLIGHT_MAX; i++)
        used |= atomic_load(&work->in_flight[i].set) == set;
    return used;
}

// Waits for the set's jobs.
static void close_geometry(struct camera_work *work, struct geometry *set)
{
    pthread_mutex_lock(&work->lock);
    atomic_fetch_add(&work->waiters, 1);
    while (is_used(work, set))
        pthread_cond_wait(&work->room, &work->lock);
    atomic_fetch_sub(&work->waiters, 1);
    pthread_mutex_unlock(&work->lock);
    geometry_close(set);
}

static void set_outputs(const struct camera_work *work, struct geometry *set,
                        struct subscriptions *outputs)
{
    *set = (struct geometry){
        .lease = work->context.lease,
        .outputs = subscriptions_acquire(outputs),
        .list = outputs->list,
        .n_outputs = outputs->n_pictures,
    };
}

static void close_oldest(struct camera_work *work)
{
    struct geometry *oldest = set_at(work, 0);
    struct subscriptions *outputs = oldest->outputs;
    close_geometry(work, oldest);
    change_backend(work, outputs, set_at(work, 1)->outputs, false);
    pthread_mutex_lock(&work->lock);
    work->first = (work->first + 1) % SETS;
    work->n--;
    pthread_mutex_unlock(&work->lock);
    if (subscriptions_release(outputs))
        event_post(work->context.events, &outputs->released);
}

// Closes former sets that no job uses any more. In their order, so that an output is detached
// with the last set that has it.
static void close_former(struct camera_work *work)
{
    while (work->n > 1 && !is_used(work, set_at(work, 0)))
        close_oldest(work);
}

// Without room for a second geometry, the next frame waits for the jobs of the former one. That is
// not worth a notice.
static int open_geometry(struct camera_work *work, struct geometry *set)
{
    struct geometry *former = set == present(work) ? NULL : present(work);
    const struct frame *shape = &work->shape;
    const struct image *image = &shape->image;
    int num = shape->rate_num, den = shape->rate_den;
    char notice[NOTICE_MAX] = "";
    size_t surfaces = 0;
    if (image->memory == MEMORY_CUDA)
        surfaces = budget_nvdec(shape->codec, image->width, image->height,
                                image->format == PIXEL_P010 ? 10 : 8, shape->surfaces);
    int rc = geometry_open(set, image, surfaces, former, notice);
    rate_limit(&work->rate, &num, &den);
    if (rc == 0)
        rc = crops_prepare(work->crops, image, num, den, notice);
    if (rc == 0 || !former)
        strcpy(work->notice, notice);
    return rc;
}

// --- parked pictures

// Under OVERFLOW_WAIT, waits until the batch has at most `parked` pictures of this camera.
static void wait_for_batch(const struct camera_work *work, struct output *output, int parked)
{
    if (!output->parent)
        return;
    stage_enter(work->context.stages, STAGE_SUBMIT, STAGE_NO_LIMIT);
    batch_wait(&output->share, parked, &work->interrupted);
    stage_enter(work->context.stages, STAGE_SUBMIT, 0);
}

// Waits like that for the batches that `next` (NULL: none) does not have, and loses the pictures
// that remain parked there.
static void leave_batches(struct camera_work *work, const struct subscriptions *next)
{
    const struct geometry *set = present(work);
    for (int i = 0; i < set->outputs->n_pictures; i++) {
        struct output *output = output_of(set, i);
        if (!output->parent || (next && subscriptions_have(next, output)))
            continue;
        wait_for_batch(work, output, 0);
        batch_withdraw(&output->share, atomic_load(work->context.stop)   ? LOSS_STOPPING
                                       : atomic_load(&work->interrupted) ? LOSS_BACKEND
                                                                         : LOSS_OVERFLOW);
    }
}

// --- life

int work_open(struct camera_work **ret, const struct work_context *context)
{
    struct camera_work *work = calloc(1, sizeof *work);
    if (!work)
        return -ENOMEM;
    work->context = *context;
    set_outputs(work, &work->sets[0], context->subscriptions);
    work->n = 1;
    work->rate.fps = context->fps;
    for (int i = 0; i < FRAMES_IN_FLIGHT_MAX; i++)
        work->in_flight[i].work = work;
    pthread_mutex_init(&work->lock, NULL);
    condition_init(&work->room);
    crops_subscribe(&work->crops, context->subscriptions, context->lease, context->events);
    *ret = work;
    return 0;
}

// Leaves the pictures kept for crops alone.
static void drain_pictures(struct camera_work *work)
{
    leave_batches(work, NULL);
    while (work->n > 1)
        close_oldest(work);
    close_geometry(work, present(work));
    work->retry_ns = 0;
}

void work_drain(struct camera_work *work)
{
    drain_pictures(work);
    crops_drain(work->crops);
}

void work_subscribe(struct camera_work *work, struct subscriptions *next)
{
    const struct geometry *before = present(work);
    leave_batches(work, next);
    if (work->n == SETS)
        close_oldest(work);
    const int64_t begun_ns = monotonic_ns();
    struct geometry *set = set_at(work, work->n);
    set_outputs(work, set, next);
    change_backend(work, next, before->outputs, true);
    crops_subscribe(&work->crops, next, work->context.lease, work->context.events);
    if (before->source.format != PIXEL_NONE && open_geometry(work, set) < 0) {
        leave_batches(work, NULL);
        geometry_close(set);
    }
    work_delayed(work, monotonic_ns() - begun_ns);
    pthread_mutex_lock(&work->lock);
    work->n++;
    pthread_mutex_unlock(&work->lock);
    work->retry_ns = 0;
    close_former(work);
}

void work_close(struct camera_work *work)
{
    if (!work)
        return;
    work_drain(work);
    crops_close(&work->crops);
    subscriptions_release(present(work)->outputs);
    pthread_cond_destroy(&work->room);
    pthread_mutex_destroy(&work->lock);
    free(work);
}

static void interrupt(void *opaque)
{
    struct camera_work *work = opaque;
    atomic_store(&work->interrupted, true);
    pthread_mutex_lock(&work->lock);
    const struct geometry *set = present(work);
    for (int i = 0; i < set->outputs->n_pictures; i++)
        pool_wake(output_of(set, i)->pool);
    pthread_cond_broadcast(&work->room);
    pthread_mutex_unlock(&work->lock);
}

void work_wake(struct camera_work *work)
{
    interrupt(work);
}

void work_attach(struct camera_work *work)
{
    const struct work_context *context = &work->context;
    change_backend(work, present(work)->outputs, NULL, true);
    atomic_store(&work->interrupted, false);
    if (atomic_load(context->stop)) // set before work_wake is called
        atomic_store(&work->interrupted, true);
    device_on_failure(context->lease, interrupt, work);
}

void work_detach(struct camera_work *work)
{
    work_drain(work);
    change_backend(work, present(work)->outputs, NULL, false);
}

int64_t work_keeps_ns(const struct camera_work *work)
{
    return crops_keep_ns(work->crops);
}

const char *work_notice(struct camera_work *work)
{
    if (strcmp(work->noticed, work->notice) == 0)
        return NULL;
    strcpy(work->noticed, work->notice);
    return work->notice[0] ? work->notice : NULL;
}

// --- room in the backend

// A delay while still catching up used up that much time and brings more frames: twice `ns`.
void work_delayed(struct camera_work *work, int64_t ns)
{
    int64_t now = monotonic_ns();
    if (ns < SHORT_DELAY_NS)
        return;
    if (work->patient_until_ns > now)
        work->patient_until_ns += 2 * ns;
    else
        work->patient_until_ns = now + ns + BURST_NS;
}

static void release_in_flight(struct in_flight *flight)
{
    struct camera_work *work = flight->work;
    frame_release(&flight->frame);
    memset(flight->result, 0, sizeof flight->result);
    atomic_store(&work->stuck, false);
    atomic_store(&flight->set, NULL);
    if (atomic_load(&work->waiters) == 0)
        return;
    pthread_mutex_lock(&work->lock);
    pthread_cond_broadcast(&work->room);
    pthread_mutex_unlock(&work->lock);
}

// Takes a free entry for a job with the present set, until release_in_flight; NULL: there is none.
// Under lock, or in the camera's thread, which alone changes the sets.
static struct in_flight *take_free(struct camera_work *work)
{
    const int depth = frames_in_flight(work->context.lease->driver);
    for (int i = 0; i < depth; i++) {
        struct geometry *none = NULL;
        struct in_flight *flight = &work->in_flight[i];
        if (atomic_compare_exchange_strong(&flight->set, &none, present(work)))
            return flight;
    }
    return NULL;
}

// Waits until an entry is free, the work is woken to stop, or CLOCK_MONOTONIC reaches `until_ns`.
static struct in_flight *wait_for_free(struct camera_work *work, int64_t until_ns)
{
    struct in_flight *flight;
    int rc = 0;
    pthread_mutex_lock(&work->lock);
    atomic_fetch_add(&work->waiters, 1);
    while (!(flight = take_free(work)) && rc == 0 && !atomic_load(work->context.stop) &&
           !atomic_load(&work->interrupted))
        rc = condition_wait(&work->room, &work->lock, until_ns);
    atomic_fetch_sub(&work->waiters, 1);
    pthread_mutex_unlock(&work->lock);
    return flight;
}

// Returns how long a frame may wait for the backend. With waits of half an interval, a camera at
// its nominal rate never falls behind.
static int64_t patience_of(const struct subscriptions *outputs, const struct frame *frame)
{
    for (int i = 0; i < outputs->n_pictures; i++)
        if (outputs->list[i].output->config->overflow == OVERFLOW_WAIT)
            return INT64_MAX;
    int64_t interval =
        frame->rate_num > 0 ? INT64_C(1000000000) * frame->rate_den / frame->rate_num : NOMINAL_NS;
    return interval < NOMINAL_NS * 5 ? interval / 2 : NOMINAL_NS * 5 / 2;
}

// Takes an entry for the frame once batches have room for it; NULL: the backend is busy for longer
// than the frame may wait. A burst may wait longer (packets read while probing come all at once,
// and other cameras start too): the frames behind it are still in the socket.
static struct in_flight *begin_in_flight(struct camera_work *work, const struct frame *frame)
{
    const struct subscriptions *outputs = present(work)->outputs;
    const int64_t patience_ns = patience_of(outputs, frame);
    for (int i = 0; i < outputs->n_pictures; i++)
        wait_for_batch(work, outputs->list[i].output, BATCH_PARKED_WAIT - 1);
    const int64_t now = monotonic_ns();
    const bool is_patient = now < work->patient_until_ns;
    int64_t until = INT64_MAX;
    if (patience_ns < INT64_MAX)
        until = now + patience_ns + BURST_NS - work->waited_ns;
    if (until < work->patient_until_ns)
        until = work->patient_until_ns;
    struct in_flight *flight = take_free(work);
    if (!flight)
        flight = wait_for_free(work, until);
    if (patience_ns < INT64_MAX && !is_patient) {
        int64_t waited = work->waited_ns + monotonic_ns() - now - patience_ns;
        work->waited_ns = waited < 0 ? 0 : waited < BURST_NS ? waited : BURST_NS;
    }
    return flight;
}

// --- a job

// Any thread. Reports a failure of the device itself to the devices, and returns 0. Returns any
// other error as it was, for the caller.
static int report_failure(const struct camera_work *work, int rc)
{
    if (rc != -EIO && rc != -ENODEV)
        return rc;
    device_failed(work->context.lease, rc);
    return 0;
}

// The last of the two to hold the entry releases it: a plan may be closed once every submit has
// returned.
static void drop_in_flight(struct in_flight *flight)
{
    if (atomic_fetch_sub(&flight->holds, 1) == 1)
        release_in_flight(flight);
}

static void complete(struct in_flight *flight, int status)
{
    struct camera_work *work = flight->work;
    const struct geometry *set = flight->set;
    const struct frame_info *info = &flight->frame.info;
    int64_t now = monotonic_ns();
    stage_job_ends(work->context.stages, now);
    for (int i = 0; i < set->outputs->n_pictures; i++) {
        struct output *output = output_of(set, i);
        if (!flight->result[i])
            continue;
        if (status == 0) {
            latency_observe(&output->latency, now - info->received_ns);
            latency_observe(&output->processing, now - info->decoded_ns);
        }
        const int n = geometry_elements(set, i).n;
        if (output->parent)
            batch_complete(&output->share, flight->result[i], flight->first[i], n, status);
        else
            pool_complete(output->pool, flight->result[i], 0, n, status);
        event_post(work->context.events, &output->outlet->ready);
    }
    drop_in_flight(flight);
}

// Backend thread.
static void job_done(struct job *job, int status)
{
    struct in_flight *flight = job->opaque;
    const struct frame_info *info = &flight->frame.info;
    struct camera_work *work = flight->work;
    if (!flight->is_viewed) {
        histogram_observe(work->context.decode, info->decoded_ns - info->received_ns);
        histogram_observe(work->context.process, monotonic_ns() - info->decoded_ns);
    }
    if (status == -EREMOTEIO)
        atomic_store(&work->job_failed, true);
    report_failure(work, status);
    complete(flight, status);
}

static void begin_job(struct in_flight *flight)
{
    const struct geometry *geometry = atomic_load(&flight->set);
    const size_t at = (size_t)(flight - flight->work->in_flight) * (size_t)geometry->n;
    struct job_result *results = geometry->results + at;
    memset(results, 0, (size_t)geometry->n * sizeof *results);
    flight->is_viewed = false;
    atomic_store(&flight->holds, 2);
    flight->job = (struct job){
        .src = flight->frame.image,
        .results = results,
        .n = geometry->n,
        .done = job_done,
        .opaque = flight,
    };
}

// Makes the job fill the items from `first` on with the elements of that subscription.
static void add_elements(struct in_flight *flight, int subscription,
                         const struct elements *elements, struct result *result, int first)
{
    const struct geometry *set = flight->set;
    flight->result[subscription] = result;
    flight->first[subscription] = first;
    elements_fill(flight->job.results + set->first[subscription], elements, result, first);
}

static int start_job(struct in_flight *flight)
{
    const struct camera_work *work = flight->work;
    const struct geometry *set = flight->set;
    stage_job_begins(work->context.stages);
    int rc = work->context.lease->driver->submit(set->plan, &flight->job);
    if (rc < 0)
        complete(flight, rc);
    drop_in_flight(flight);
    return rc;
}

// --- a frame

// Batches come behind the camera's own outputs: other cameras wait for items claimed there, and a
// client of an output may take its time. Viewers are last, and never wait.
enum claimants { CLAIM_OWN, CLAIM_SHARES, CLAIM_VIEWED };

static enum claimants claimants_of(const struct output *output)
{
    return output->demand ? CLAIM_VIEWED : output->parent ? CLAIM_SHARES : CLAIM_OWN;
}

// Claims items of these outputs for the job. False: claimed none.
static bool claim_outputs(struct in_flight *flight, struct claim *claim, enum claimants who)
{
    const struct geometry *set = flight->set;
    bool any = false;
    for (int i = 0; i < set->outputs->n_pictures; i++) {
        struct output *output = output_of(set, i);
        const struct elements elements = geometry_elements(set, i);
        struct result *result;
        int first;
        if (claimants_of(output) != who)
            continue;
        if (claim_items(claim, output, &elements, &result, &first) == 0) {
            add_elements(flight, i, &elements, result, first);
            any = true;
        } else if (output->demand && atomic_load(&output->demand->refused)) {
            event_post(flight->work->context.events, &output->outlet->ready);
        }
    }
    return any;
}

// Counts a frame that no output received as lost by each of them. Thinned frames are no loss to a
// client: they take no ordinal.
static void lose_frame(const struct subscriptions *outputs, enum loss reason)
{
    for (int i = 0; i < outputs->n_pictures; i++) {
        struct output *output = outputs->list[i].output;
        output->sequence++;
        output->ordinal += reason != LOSS_THINNED;
        ledger_offer(&output->ledger);
        ledger_lose(&output->ledger, reason);
    }
}

// Offers the frame in `flight` to every output, as one job. `thinned`: to viewers alone.
static int submit(struct in_flight *flight, bool thinned)
{
    struct camera_work *work = flight->work;
    struct claim claim = {
        .frame = &flight->frame,
        .number = work->pictures,
        .wait_until_ns = work->patient_until_ns,
        .stop = work->context.stop,
        .interrupted = &work->interrupted,
        .stages = work->context.stages,
    };
    rate_limit(&work->rate, &flight->frame.rate_num, &flight->frame.rate_den);
    begin_job(flight);
    bool wanted = !thinned && claim_outputs(flight, &claim, CLAIM_OWN);
    wanted |= !thinned && claim_outputs(flight, &claim, CLAIM_SHARES);
    flight->is_viewed = !wanted;
    wanted |= claim_outputs(flight, &claim, CLAIM_VIEWED);
    work_delayed(work, claim.opening_ns);
    if (!thinned)
        crops_keep(work->crops, &flight->frame);
    if (wanted)
        return start_job(flight);
    release_in_flight(flight);
    return 0;
}

// Closes the plan of a failed job; the other cameras of the device go on.
static void close_failed_plan(struct camera_work *work)
{
    drain_pictures(work);
    const int64_t now = monotonic_ns();
    const bool again = now < work->job_failed_ns + RETRY_NS;
    work->job_failed_ns = now;
    work->retry_ns = again ? now + RETRY_NS : 0;
}

// Opens ops and a plan if the source differs from the last one. -EAGAIN: opening failed less than
// RETRY_NS ago. Drains on failure: the device must not hold a part of it.
static int update_geometry(struct camera_work *work, const struct frame *frame)
{
    const bool failed = atomic_exchange(&work->job_failed, false);
    if (failed)
        close_failed_plan(work);
    const int64_t begun_ns = monotonic_ns();
    if (geometry_is_alike(&present(work)->source, &frame->image))
        return 0;
    if (begun_ns < work->retry_ns)
        return -EAGAIN;
    drain_pictures(work);
    work->shape = *frame;
    work->shape.owner = NULL;
    work->shape.release = NULL;
    int rc = open_geometry(work, present(work));
    if (rc < 0)
        work_drain(work);
    work->retry_ns = rc < 0 ? monotonic_ns() + RETRY_NS : 0;
    if (failed && rc == 0) {
        snprintf(work->notice, sizeof work->notice,
                 "backend %s: a job failed, its plan was opened again",
                 work->context.lease->driver->name);
        work->noticed[0] = 0;
    }
    work_delayed(work, monotonic_ns() - begun_ns);
    return rc;
}

// Outputs for viewers are last.
static bool has_viewers(const struct subscriptions *outputs)
{
    return outputs->n_pictures > 0 && outputs->list[outputs->n_pictures - 1].output->demand;
}

// Timestamps may restart in a new epoch.
static void update_epoch(struct camera_work *work, uint32_t epoch)
{
    const struct subscriptions *outputs = present(work)->outputs;
    if (work->epoch == epoch)
        return;
    work->epoch = epoch;
    rate_restart(&work->rate);
    for (int i = 0; i < outputs->n; i++)
        rate_restart(&outputs->list[i].output->rate);
}

// Analyses the frame for the scene and the outputs of its lines.
static void observe(struct camera_work *work, struct frame *frame)
{
    const struct work_context *context = &work->context;
    stage_enter(context->stages, STAGE_ANALYSE, 0);
    const struct scene_record *record = scene_observe(context->scene, frame);
    stats_outputs_offer(present(work)->outputs, context->events, &frame->info, record,
                        context->stop);
    stage_enter(context->stages, STAGE_SUBMIT, 0);
}

// Counts a frame that is not analysed either.
static void lose_unseen(const struct subscriptions *outputs, enum loss reason)
{
    lose_frame(outputs, reason);
    stats_outputs_lose(outputs, reason);
}

// A frame beyond the camera's `fps` is offered to viewers alone, and does not wait for the backend.
int work_submit(struct camera_work *work, struct frame *frame)
{
    const struct subscriptions *outputs = present(work)->outputs;
    struct in_flight *flight = NULL;
    int rc = 0;

    close_former(work);
    if (frame->lost) {
        lose_unseen(outputs, frame->refused ? LOSS_CONFIG : LOSS_DAMAGED);
        return 0;
    }
    update_epoch(work, frame->info.epoch);
    work->pictures++;
    const bool thinned = !rate_keeps(&work->rate, frame->info.pts_ns);
    if (thinned)
        lose_unseen(outputs, LOSS_THINNED);
    else
        observe(work, frame);
    if (!thinned || has_viewers(outputs))
        rc = update_geometry(work, frame);
    if (rc == 0 && !thinned)
        flight = begin_in_flight(work, frame);
    else if (rc == 0 && has_viewers(outputs))
        flight = take_free(work);
    if (flight) {
        flight->frame = *frame;
        *frame = (struct frame){0};
        return report_failure(work, submit(flight, thinned));
    }
    frame_release(frame);
    if (!thinned)
        lose_frame(outputs, rc < 0                            ? LOSS_BACKEND
                            : atomic_load(work->context.stop) ? LOSS_STOPPING
                            : atomic_load(&work->interrupted) ? LOSS_BACKEND
                                                              : LOSS_BACKEND_BUSY);
    return rc == -EAGAIN ? 0 : report_failure(work, rc);
}

// --- a parked picture

void work_resume(struct batch_grant *grant)
{
    struct camera_work *work = grant->member->producer;
    // It waits for a hung backend once, not for each picture: the collector serves all cameras.
    struct in_flight *flight =
        wait_for_free(work, atomic_load(&work->stuck) ? 0 : monotonic_ns() + RESUME_NS);
    if (!flight) {
        const bool stops = atomic_load(work->context.stop);
        atomic_store(&work->stuck, true);
        batch_complete(grant->member, grant->result, grant->first, grant->parts,
                       stops ? -ECANCELED : -ETIMEDOUT);
        frame_release(&grant->parked.frame);
        return;
    }
    const struct geometry *set = flight->set;
    int i = 0;
    while (&output_of(set, i)->share != grant->member)
        i++;
    const struct elements elements = geometry_elements(set, i);
    flight->frame = grant->parked.frame;
    begin_job(flight);
    if (elements.n == grant->parts) {
        elements_describe(grant->result, grant->first, &elements, output_of(set, i),
                          &flight->frame.info, grant->parked.sequence, grant->parked.ordinal);
        add_elements(flight, i, &elements, grant->result, grant->first);
        report_failure(work, start_job(flight));
    } else { // other outputs, which came meanwhile, have left the plan no room for it
        batch_complete(grant->member, grant->result, grant->first, grant->parts, -E2BIG);
        release_in_flight(flight);
    }
}
