#include "daemon/work/work.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/device/budget.h"
#include "daemon/work/crops.h"
#include "daemon/work/geometry.h"

static const int64_t NOMINAL_NS = 40000000; // between frames of a stream without a rate
static const int64_t BURST_NS = 250000000;  // that frames in a row may wait beyond their patience
static const int64_t SHORT_DELAY_NS = 10000000; // shorter ones delay no frame of a nominal rate
static const int64_t RETRY_NS = 1000000000;     // between tries to get a backend's buffers
static const int64_t RESUME_NS = 1000000000;    // that a batch waits for one camera's backend, once

enum { SETS = FRAMES_IN_FLIGHT_MAX + 1 }; // the present one, and those that jobs still use

struct output_set {
    struct subscriptions *outputs; // a reference
    struct geometry geometry;      // closed: no picture has come, or opening failed
    _Atomic int users;             // jobs, and a collector that starts one; changed under lock
};

// One frame in the backend: the job, its source, and the result of each output that takes it.
struct in_flight {
    struct job job;
    struct frame frame;
    struct output_set *set;
    struct result *result[SUBSCRIPTIONS_MAX]; // NULL: the output does not take the frame
    int first[SUBSCRIPTIONS_MAX];             // first item in that result
    bool is_viewed;                           // all of them are for viewers
    struct camera_work *work;
    bool busy; // under lock
};

struct camera_work {
    struct work_context context;
    bool attached;       // *lease is acquired
    struct crops *crops; // a list
    struct frame shape;  // the last frame that a geometry was opened for, without its picture
    struct rate rate;    // the camera's `fps`
    uint64_t pictures;   // offered, except lost ones
    uint32_t epoch;
    int64_t opening_ns; // time spent to open memory of outputs for the present frame
    int64_t waited_ns;  // excess of the last frames over their patience; shorter waits reduce it
    int64_t patient_until_ns; // CLOCK_MONOTONIC: until then frames wait instead of being lost
    int64_t retry_ns;         // earliest next try to open a geometry after a failure
    char notice[256];
    bool noticed;             // notice was returned
    _Atomic bool job_failed;  // a job failed on a device that goes on
    int64_t job_failed_ns;    // when the camera's thread last saw that
    _Atomic bool interrupted; // waits for clients end: *stop, or the device has failed
    pthread_mutex_t lock;
    pthread_cond_t room; // an entry of in_flight became free, or work_wake
    // A ring, the newest is the present one. Changed by the camera's thread, under lock.
    struct output_set sets[SETS];
    int first, n;
    bool stuck; // under lock: a batch waited for the backend in vain, and no job has ended since
    struct in_flight in_flight[FRAMES_IN_FLIGHT_MAX];
};

// --- sets of outputs

static struct output_set *set_at(struct camera_work *work, int i)
{
    return &work->sets[(work->first + i) % SETS];
}

static struct output_set *present(struct camera_work *work)
{
    return set_at(work, work->n - 1);
}

static struct output *output_of(const struct output_set *set, int subscription)
{
    return set->outputs->list[subscription].output;
}

static struct elements elements_of(const struct output_set *set, int subscription)
{
    const struct geometry *geometry = &set->geometry;
    const int at = geometry->first[subscription];
    return (struct elements){geometry->elements + at, geometry->first[subscription + 1] - at};
}

// Attaches, or detaches, the outputs of `list` that `others` (NULL: none) does not have.
static void change_backend(struct camera_work *work, const struct subscriptions *list,
                           const struct subscriptions *others, bool attaches)
{
    const struct device_lease *lease = work->context.lease;
    for (int i = 0; work->attached && i < list->n_pools; i++) {
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

// Waits for the set's jobs.
static void close_geometry(struct camera_work *work, struct output_set *set)
{
    pthread_mutex_lock(&work->lock);
    while (set->users > 0)
        pthread_cond_wait(&work->room, &work->lock);
    pthread_mutex_unlock(&work->lock);
    geometry_close(&set->geometry, work->context.lease);
}

static void close_oldest(struct camera_work *work)
{
    struct output_set *oldest = set_at(work, 0);
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
    while (work->n > 1 && atomic_load(&set_at(work, 0)->users) == 0)
        close_oldest(work);
}

static int open_geometry(struct camera_work *work, struct output_set *set)
{
    struct output_set *former = set == present(work) ? NULL : present(work);
    const struct frame *shape = &work->shape;
    const struct image *image = &shape->image;
    int num = shape->rate_num, den = shape->rate_den;
    size_t surfaces = 0;
    char before[sizeof work->notice];
    strcpy(before, work->notice);
    work->notice[0] = 0;
    if (image->memory == MEMORY_CUDA)
        surfaces = budget_nvdec(shape->codec, image->width, image->height,
                                image->format == PIXEL_P010 ? 10 : 8, shape->surfaces);
    int rc = geometry_open(&set->geometry, work->context.lease, set->outputs->list,
                           set->outputs->n_pictures, image, surfaces,
                           former ? &former->geometry : NULL, work->notice, sizeof work->notice);
    rate_limit(&work->rate, &num, &den);
    if (rc == 0)
        rc = crops_prepare(work->crops, image, num, den, work->notice, sizeof work->notice);
    work->noticed &= rc == 0 && strcmp(before, work->notice) == 0;
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
    const struct output_set *set = present(work);
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
    work->sets[0].outputs = subscriptions_acquire(context->subscriptions);
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

// Without room for a second geometry, the next frame waits for the jobs of the former one. That is
// not worth a notice.
static void open_beside(struct camera_work *work, struct output_set *set)
{
    const int64_t begun_ns = monotonic_ns();
    const bool noticed = work->noticed;
    char before[sizeof work->notice];
    strcpy(before, work->notice);
    if (open_geometry(work, set) < 0) {
        leave_batches(work, NULL);
        geometry_close(&set->geometry, work->context.lease);
        strcpy(work->notice, before);
        work->noticed = noticed;
    }
    work_delayed(work, monotonic_ns() - begun_ns);
}

void work_subscribe(struct camera_work *work, struct subscriptions *next)
{
    const struct output_set *before = present(work);
    leave_batches(work, next);
    if (work->n == SETS)
        close_oldest(work);
    struct output_set *set = set_at(work, work->n);
    set->outputs = subscriptions_acquire(next);
    change_backend(work, next, before->outputs, true);
    crops_subscribe(&work->crops, next, work->context.lease, work->context.events);
    if (before->geometry.source.format != PIXEL_NONE)
        open_beside(work, set);
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
    const struct output_set *set = present(work);
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
    work->attached = true;
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
    work->attached = false;
}

int64_t work_keeps_ns(const struct camera_work *work)
{
    return crops_keep_ns(work->crops);
}

const char *work_notice(struct camera_work *work)
{
    if (work->noticed || !work->notice[0])
        return NULL;
    work->noticed = true;
    return work->notice;
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
    pthread_mutex_lock(&work->lock);
    flight->busy = false;
    flight->set->users--;
    work->stuck = false;
    pthread_cond_broadcast(&work->room);
    pthread_mutex_unlock(&work->lock);
}

static struct in_flight *find_free(struct camera_work *work)
{
    const int depth = frames_in_flight(work->context.lease->driver);
    for (int i = 0; i < depth; i++)
        if (!work->in_flight[i].busy)
            return &work->in_flight[i];
    return NULL;
}

// Takes an entry for a job with the present set, until release_in_flight. Waits until one is
// free, the work is woken to stop, or CLOCK_MONOTONIC reaches `until_ns`. Under lock.
static struct in_flight *take_in_flight(struct camera_work *work, int64_t until_ns)
{
    struct in_flight *flight;
    int rc = 0;
    while (!(flight = find_free(work)) && rc == 0 && !atomic_load(work->context.stop) &&
           !atomic_load(&work->interrupted))
        rc = condition_wait(&work->room, &work->lock, until_ns);
    if (flight) {
        flight->busy = true;
        flight->set = present(work);
        flight->set->users++;
    }
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

// NULL: the backend is busy for longer than the frame may wait. A burst may wait longer (packets
// read while probing come all at once, and other cameras start too): the frames behind it are still
// in the socket.
static struct in_flight *begin_in_flight(struct camera_work *work, int64_t patience_ns)
{
    int64_t now = monotonic_ns(), until = INT64_MAX;
    const bool is_patient = now < work->patient_until_ns;
    if (patience_ns < INT64_MAX)
        until = now + patience_ns + BURST_NS - work->waited_ns;
    if (until < work->patient_until_ns)
        until = work->patient_until_ns;
    pthread_mutex_lock(&work->lock);
    struct in_flight *flight = take_in_flight(work, until);
    pthread_mutex_unlock(&work->lock);
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

static void complete(struct in_flight *flight, int status)
{
    struct camera_work *work = flight->work;
    const struct output_set *set = flight->set;
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
        const int n = elements_of(set, i).n;
        if (output->parent)
            batch_complete(&output->share, flight->result[i], flight->first[i], n, status);
        else
            pool_complete(output->pool, flight->result[i], 0, n, status);
        event_post(work->context.events, &output->outlet->ready);
    }
    release_in_flight(flight);
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
    const struct geometry *geometry = &flight->set->geometry;
    const size_t at = (size_t)(flight - flight->work->in_flight) * (size_t)geometry->n;
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

// Makes the job fill the items from `first` on with the elements of that subscription.
static void add_elements(struct in_flight *flight, int subscription, struct result *result,
                         int first)
{
    const struct elements elements = elements_of(flight->set, subscription);
    struct job_result *to = flight->job.results + flight->set->geometry.first[subscription];
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
    const struct camera_work *work = flight->work;
    stage_job_begins(work->context.stages);
    int rc = work->context.lease->driver->submit(flight->set->geometry.plan, &flight->job);
    if (rc < 0)
        complete(flight, rc);
    return rc;
}

// --- claims

// Waits for consumers without a limit, except for viewers. Returns 0, the first item, or an error
// of pool_claim.
static int claim_result(struct in_flight *flight, struct output *output,
                        const struct elements *elements, struct result **ret)
{
    struct camera_work *work = flight->work;
    const struct frame *frame = &flight->frame;
    const struct op *op = &elements->list[0].op;
    struct pool_request request = {
        .size = op->dst_bytes,
        .items = elements->n,
        .ledger = &output->ledger,
        .wait_until_ns = output->demand ? 0 : work->patient_until_ns,
        .stop = &work->interrupted,
    };
    if (output->config->overflow == OVERFLOW_WAIT || monotonic_ns() < request.wait_until_ns)
        stage_enter(work->context.stages, STAGE_SUBMIT, STAGE_NO_LIMIT);
    int rc = pool_claim(output->pool, &request, ret);
    stage_enter(work->context.stages, STAGE_SUBMIT, 0);
    work->opening_ns += request.opening_ns;
    if (rc == 0)
        (*ret)->format = elements_format(op, output, frame->info.field_order, frame->rate_num,
                                         frame->rate_den, (*ret)->data);
    return rc;
}

// Does not wait: work_submit waits for batches before it claims anything. Returns the first item,
// or an error of batch_claim.
static int claim_of_batch(struct in_flight *flight, struct output *output,
                          const struct elements *elements, uint64_t ordinal, struct result **ret)
{
    const struct frame *frame = &flight->frame;
    const struct op *op = &elements->list[0].op;
    struct batch_request request = {
        .size = op->dst_bytes,
        .format = elements_format(op, output, frame->info.field_order, frame->rate_num,
                                  frame->rate_den, NULL),
        .parts = elements->n,
        .ordinal = ordinal,
        .epoch = frame->info.epoch,
    };
    int first = 0;
    memcpy(request.fill, op->warp.fill_element, sizeof request.fill);
    int rc = batch_claim(&output->share, &request, ret, &first);
    flight->work->opening_ns += request.opening_ns;
    return rc < 0 ? rc : first;
}

// Hands the frame to the batch, which fills its items later. False: the frame cannot be shared.
static bool park(struct in_flight *flight, struct output *output, int parts, uint64_t sequence,
                 uint64_t ordinal)
{
    struct parked parked = {.sequence = sequence, .ordinal = ordinal};
    if (frame_share(&flight->frame, &parked.frame) < 0)
        return false;
    batch_park(&output->share, &parked, parts);
    return true;
}

// Offers the frame to one output. Claims items for its elements and describes them in *ret. Returns
// the index of the first item, or -1: the output has lost the frame, with the reason counted, or a
// batch has parked it.
static int claim_frame(struct in_flight *flight, int subscription, struct result **ret)
{
    struct output *output = output_of(flight->set, subscription);
    const struct elements elements = elements_of(flight->set, subscription);
    const struct frame_info *info = &flight->frame.info;
    enum loss reason = LOSS_CONFIG; // no elements: they cannot be made from this source
    int rc = -1;
    uint64_t sequence = output->sequence++;
    ledger_offer(&output->ledger);
    const bool opens = gate_opens(&output->gate, &output->config->gate, info);
    // A picture behind a closed gate must not delay the first one that passes.
    const bool kept = opens && rate_keeps(&output->rate, info->pts_ns);
    if (!kept) { // no loss to a client: takes no ordinal
        ledger_lose(&output->ledger, opens ? LOSS_THINNED : LOSS_STILL);
        return -1;
    }
    uint64_t ordinal = output->ordinal++;
    if (elements.n > 0 && frame_is_late(info, output->config->max_age.ns)) {
        reason = LOSS_LATE;
    } else if (elements.n > 0) {
        rc = output->parent ? claim_of_batch(flight, output, &elements, ordinal, ret)
                            : claim_result(flight, output, &elements, ret);
        const bool parked =
            rc == -EAGAIN && output->parent && park(flight, output, elements.n, sequence, ordinal);
        if (rc >= 0 || parked)
            gate_passed(&output->gate, info);
        if (parked)
            return -1;
        reason = claim_loss(rc, atomic_load(flight->work->context.stop));
    }
    if (rc < 0)
        ledger_lose(&output->ledger, reason);
    else
        elements_describe(*ret, rc, &elements, output, info, sequence, ordinal);
    return rc < 0 ? -1 : rc;
}

// Claims items for the job, of shares in batches or of the other outputs. False: claimed none.
static bool claim_outputs(struct in_flight *flight, bool shares)
{
    const struct subscriptions *outputs = flight->set->outputs;
    bool any = false;
    for (int i = 0; i < outputs->n_pictures; i++) {
        const struct output *output = outputs->list[i].output;
        struct result *result;
        if (output->demand || (output->parent != NULL) != shares)
            continue;
        int first = claim_frame(flight, i, &result);
        if (first < 0)
            continue;
        add_elements(flight, i, result, first);
        any = true;
    }
    return any;
}

// --- claims for viewers

// Counts the result's memory before it is claimed: its slots and, to show a tensor, two copies with
// three bytes a pixel. Returns 0, -EFBIG or -EDQUOT.
static int admit_demand(struct demand *demand, const struct op *op)
{
    const size_t pixels = (size_t)op->dst.width * (size_t)op->dst.height;
    const size_t bytes = DEMAND_SLOTS * op->dst_bytes + (demand->of ? pixels * 2 * 3 : 0);
    if (op->dst.width > DEMAND_SIDE_MAX || op->dst.height > DEMAND_SIDE_MAX)
        return -EFBIG;
    if (bytes == demand->bytes)
        return 0;
    const size_t more = bytes - demand->bytes; // modulo SIZE_MAX + 1
    const size_t all = atomic_fetch_add(demand->taken, more) + more;
    const bool fits = all <= DEMANDS_BYTES_MAX;
    if (!fits)
        atomic_fetch_sub(demand->taken, bytes);
    demand->bytes = fits ? bytes : 0;
    return fits ? 0 : -EDQUOT;
}

// Claims the one item of an output for viewers if it is due. Returns 0; -EAGAIN: not now; or
// another negative errno. A lasting reason is in demand->refused, too.
static int claim_demanded(struct in_flight *flight, int subscription, struct result **ret)
{
    struct output *output = output_of(flight->set, subscription);
    struct demand *demand = output->demand;
    const struct elements elements = elements_of(flight->set, subscription);
    const struct frame_info *info = &flight->frame.info;
    const uint64_t sequence = demand->of ? demand->of->sequence - 1 : flight->work->pictures;
    const bool due = atomic_exchange(&demand->due, false);
    if (due)
        rate_restart(&output->rate);
    const bool kept = atomic_load(&demand->runs) && rate_keeps(&output->rate, info->pts_ns);
    if (!due && !kept)
        return -EAGAIN;
    int rc = elements.n > 0 ? admit_demand(demand, &elements.list[0].op) : demand->unmade;
    if (rc < 0) {
        atomic_store(&demand->refused, rc);
        return rc;
    }
    rc = claim_result(flight, output, &elements, ret);
    if (rc < 0) {
        if (due) // else the loop may have set it meanwhile
            atomic_store(&demand->due, true);
        return rc;
    }
    demand->source[(*ret)->number] = flight->frame.image;
    elements_describe(*ret, 0, &elements, output, info, sequence, sequence);
    return 0;
}

// Claims results for viewers, behind all others: they never wait. False: claimed none.
static bool claim_viewed(struct in_flight *flight)
{
    const struct subscriptions *outputs = flight->set->outputs;
    bool any = false;
    for (int i = 0; i < outputs->n_pictures; i++) {
        struct output *output = outputs->list[i].output;
        struct result *result;
        if (!output->demand)
            continue;
        if (claim_demanded(flight, i, &result) == 0) {
            add_elements(flight, i, result, 0);
            any = true;
        } else if (atomic_load(&output->demand->refused)) {
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

// --- a frame

// Offers the frame in `flight` to every output, as one job. Batches come behind the others: other
// cameras wait for items claimed there, and a client of an output may take its time. `thinned`: to
// viewers alone.
static int submit(struct in_flight *flight, bool thinned)
{
    struct camera_work *work = flight->work;
    work->opening_ns = 0;
    rate_limit(&work->rate, &flight->frame.rate_num, &flight->frame.rate_den);
    begin_job(flight);
    bool wanted = !thinned && claim_outputs(flight, false);
    wanted |= !thinned && claim_outputs(flight, true);
    flight->is_viewed = !wanted;
    wanted |= claim_viewed(flight);
    work_delayed(work, work->opening_ns);
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
    if (geometry_is_alike(&present(work)->geometry.source, &frame->image))
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
        work->noticed = false;
    }
    work_delayed(work, monotonic_ns() - begun_ns);
    return rc;
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

static int submit_frame(struct in_flight *flight, struct frame *frame, bool thinned)
{
    struct camera_work *work = flight->work;
    flight->frame = *frame;
    *frame = (struct frame){0};
    return report_failure(work, submit(flight, thinned));
}

// Offers a frame beyond the camera's `fps` to viewers, without waiting for the backend.
static int submit_thinned(struct camera_work *work, struct frame *frame)
{
    const struct subscriptions *outputs = present(work)->outputs;
    const int n = outputs->n_pictures;
    struct in_flight *flight = NULL;
    int rc = -EAGAIN;
    stats_outputs_lose(outputs, LOSS_THINNED);
    lose_frame(outputs, LOSS_THINNED);
    if (n > 0 && outputs->list[n - 1].output->demand)
        rc = update_geometry(work, frame);
    if (rc == 0) {
        pthread_mutex_lock(&work->lock);
        flight = take_in_flight(work, 0);
        pthread_mutex_unlock(&work->lock);
    }
    if (flight)
        return submit_frame(flight, frame, true);
    frame_release(frame);
    return rc == -EAGAIN ? 0 : report_failure(work, rc);
}

int work_submit(struct camera_work *work, struct frame *frame)
{
    const struct subscriptions *outputs = present(work)->outputs;
    struct in_flight *flight = NULL;
    enum loss reason;
    int rc = 0;

    close_former(work);
    if (frame->lost) {
        reason = frame->refused ? LOSS_CONFIG : LOSS_DAMAGED;
        lose_frame(outputs, reason);
        stats_outputs_lose(outputs, reason);
        return 0;
    }
    update_epoch(work, frame->info.epoch);
    work->pictures++;
    if (!rate_keeps(&work->rate, frame->info.pts_ns))
        return submit_thinned(work, frame);
    observe(work, frame);
    reason = LOSS_BACKEND;
    rc = update_geometry(work, frame);
    if (rc < 0)
        goto lost;
    for (int i = 0; i < outputs->n_pictures; i++)
        wait_for_batch(work, outputs->list[i].output, BATCH_PARKED_WAIT - 1);
    flight = begin_in_flight(work, patience_of(outputs, frame));
    reason = atomic_load(work->context.stop)   ? LOSS_STOPPING
             : atomic_load(&work->interrupted) ? LOSS_BACKEND
                                               : LOSS_BACKEND_BUSY;
    if (!flight)
        goto lost;
    return submit_frame(flight, frame, false);
lost:
    frame_release(frame);
    lose_frame(outputs, reason);
    return rc == -EAGAIN ? 0 : report_failure(work, rc);
}

// --- a parked picture

// Takes an entry, and the set once more: it must outlast the call that submits the job. Waits
// for a hung backend once, not for each picture: the collector serves all cameras of the batch.
static struct in_flight *resume_in_flight(struct camera_work *work)
{
    pthread_mutex_lock(&work->lock);
    struct in_flight *flight = take_in_flight(work, work->stuck ? 0 : monotonic_ns() + RESUME_NS);
    if (flight)
        flight->set->users++;
    else
        work->stuck = true;
    pthread_mutex_unlock(&work->lock);
    return flight;
}

void work_resume(struct batch_grant *grant)
{
    struct camera_work *work = grant->member->producer;
    struct in_flight *flight = resume_in_flight(work);
    if (!flight) {
        const bool stops = atomic_load(work->context.stop);
        batch_complete(grant->member, grant->result, grant->first, grant->parts,
                       stops ? -ECANCELED : -ETIMEDOUT);
        frame_release(&grant->parked.frame);
        return;
    }
    struct output_set *set = flight->set;
    int i = 0;
    while (&output_of(set, i)->share != grant->member)
        i++;
    const struct elements elements = elements_of(set, i);
    flight->frame = grant->parked.frame;
    begin_job(flight);
    if (elements.n == grant->parts) {
        elements_describe(grant->result, grant->first, &elements, output_of(set, i),
                          &flight->frame.info, grant->parked.sequence, grant->parked.ordinal);
        add_elements(flight, i, grant->result, grant->first);
        report_failure(work, start_job(flight));
    } else { // other outputs, which came meanwhile, have left the plan no room for it
        batch_complete(grant->member, grant->result, grant->first, grant->parts, -E2BIG);
        release_in_flight(flight);
    }
    pthread_mutex_lock(&work->lock);
    set->users--;
    pthread_cond_broadcast(&work->room);
    pthread_mutex_unlock(&work->lock);
}
