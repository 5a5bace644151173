#include "daemon/transform/transform.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/pool_region.h"
#include "daemon/device/budget.h"
#include "daemon/transform/claim.h"

static const int64_t NOMINAL_NS = 40000000; // between frames, where the stream does not say
static const int64_t BURST_NS = 250000000;  // that frames in a row may wait beyond their patience
static const int64_t HOLD_UP_NS = 10000000; // shorter ones delay no frame of a nominal rate
static const int64_t RETRY_NS = 1000000000; // between tries to get a backend's buffers

// One frame in the backend: the job, its source, and the result of each output that wants it.
struct work {
    struct job job;
    struct frame frame;
    struct result *result[PLAN_OPS_MAX];
    struct transform *pipeline;
    bool busy; // under the pipeline's lock
};

struct transform {
    struct transform_context context;
    struct subscriptions *subscriptions; // under lock where another thread reads them
    bool attached;                       // *use is a side's
    struct image source; // what ops and plan are made for; format PIXEL_NONE before the first
    struct op op[PLAN_OPS_MAX]; // of outputs where works[i]
    bool works[PLAN_OPS_MAX];   // the output can be made from this source
    int index[PLAN_OPS_MAX];    // of the output's op in the plan
    struct plan *plan;
    size_t reserved;  // device memory, counted by the lease
    struct rate rate; // the camera's own `fps`
    uint32_t epoch;
    int64_t waited_ns; // beyond their patience, by the last frames; what others need less goes off
    int64_t catches_up_until_ns; // CLOCK_MONOTONIC: until then frames wait rather than be lost
    int64_t retry_ns;            // when making a plan may be tried again, after it failed
    char notice[256];
    bool noticed; // notice was handed out
    pthread_mutex_t lock;
    pthread_cond_t idle;      // a work became free, or transform_wake
    _Atomic bool interrupted; // nobody is to wait for clients: *stop, or the device has failed
    struct work work[FRAMES_IN_FLIGHT_MAX];
};

int transform_open(struct transform **ret, const struct transform_context *context)
{
    pthread_condattr_t attributes;
    struct transform *pipeline = calloc(1, sizeof *pipeline);
    if (!pipeline)
        return -ENOMEM;
    pipeline->context = *context;
    pipeline->subscriptions = context->subscriptions;
    pipeline->rate.fps = context->fps;
    for (int i = 0; i < FRAMES_IN_FLIGHT_MAX; i++)
        pipeline->work[i].pipeline = pipeline;
    pthread_mutex_init(&pipeline->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pipeline->idle, &attributes);
    pthread_condattr_destroy(&attributes);
    *ret = pipeline;
    return 0;
}

void transform_drain(struct transform *pipeline)
{
    const struct transform_context *context = &pipeline->context;
    if (pipeline->plan)
        context->lease->driver->plan_close(pipeline->plan);
    if (pipeline->reserved)
        device_unreserve(context->lease, pipeline->reserved);
    pipeline->plan = NULL;
    pipeline->reserved = 0;
    for (int i = 0; i < pipeline->subscriptions->n; i++)
        if (pipeline->works[i])
            op_finish(&pipeline->op[i]);
    memset(pipeline->works, 0, sizeof pipeline->works);
    pipeline->source.format = PIXEL_NONE;
    pipeline->retry_ns = 0;
}

static void attach_output(const struct transform *pipeline, struct output *output)
{
    const struct device_lease *lease = pipeline->context.lease;
    pool_set_backend(output->pool, lease->driver, lease->backend);
}

void transform_subscribe(struct transform *pipeline, struct subscriptions *next)
{
    struct subscriptions *before = pipeline->subscriptions;
    transform_drain(pipeline);
    pthread_mutex_lock(&pipeline->lock);
    pipeline->subscriptions = next;
    pthread_mutex_unlock(&pipeline->lock);
    for (int i = 0; pipeline->attached && i < next->n; i++)
        if (!subscriptions_have(before, next->list[i].output))
            attach_output(pipeline, next->list[i].output);
    for (int i = 0; pipeline->attached && i < before->n; i++)
        if (!subscriptions_have(next, before->list[i].output))
            pool_clear_backend(before->list[i].output->pool);
}

void transform_close(struct transform *pipeline)
{
    if (!pipeline)
        return;
    transform_drain(pipeline);
    pthread_cond_destroy(&pipeline->idle);
    pthread_mutex_destroy(&pipeline->lock);
    free(pipeline);
}

static void interrupt(void *opaque)
{
    struct transform *pipeline = opaque;
    atomic_store(&pipeline->interrupted, true);
    pthread_mutex_lock(&pipeline->lock);
    for (int i = 0; i < pipeline->subscriptions->n; i++)
        pool_wake(pipeline->subscriptions->list[i].output->pool);
    pthread_cond_broadcast(&pipeline->idle);
    pthread_mutex_unlock(&pipeline->lock);
}

void transform_wake(struct transform *pipeline)
{
    interrupt(pipeline);
}

void transform_attach(struct transform *pipeline)
{
    const struct transform_context *context = &pipeline->context;
    for (int i = 0; i < pipeline->subscriptions->n; i++)
        attach_output(pipeline, pipeline->subscriptions->list[i].output);
    pipeline->attached = true;
    atomic_store(&pipeline->interrupted, false);
    if (atomic_load(context->stop)) // set before transform_wake is called
        atomic_store(&pipeline->interrupted, true);
    device_on_failure(context->lease, interrupt, pipeline);
}

void transform_detach(struct transform *pipeline)
{
    transform_drain(pipeline);
    for (int i = 0; pipeline->attached && i < pipeline->subscriptions->n; i++)
        pool_clear_backend(pipeline->subscriptions->list[i].output->pool);
    pipeline->attached = false;
}

const char *transform_notice(struct transform *pipeline)
{
    if (pipeline->noticed || !pipeline->notice[0])
        return NULL;
    pipeline->noticed = true;
    return pipeline->notice;
}

static void note_output(struct transform *pipeline, const char *output, int rc)
{
    size_t used = strlen(pipeline->notice);
    snprintf(pipeline->notice + used, sizeof pipeline->notice - used,
             "%soutput %s cannot be made from %s %dx%d: %s", used ? "; " : "", output,
             pixel_format_name(pipeline->source.format), pipeline->source.width,
             pipeline->source.height,
             rc == -EINVAL   ? "the crop or affine leaves the picture"
             : rc == -ERANGE ? "positions leave 32 bits"
                             : strerror(-rc));
    pipeline->noticed = false;
}

static void note_memory(struct transform *pipeline, size_t needed, size_t left)
{
    snprintf(pipeline->notice, sizeof pipeline->notice,
             "needs %zu MiB of device memory, %zu MiB are left: runs on the cpu",
             (needed + (1 << 20) - 1) >> 20, left >> 20);
    pipeline->noticed = false;
}

static bool same_geometry(const struct image *a, const struct image *b)
{
    return a->format == b->format && a->width == b->width && a->height == b->height &&
           a->memory == b->memory && a->orientation == b->orientation &&
           a->colour.matrix == b->colour.matrix && a->colour.range == b->colour.range &&
           a->colour.siting == b->colour.siting;
}

// What the camera takes of the device: the plan's buffers, NVDEC's surfaces, and slots that lie
// there.
static size_t device_bytes(const struct transform *pipeline, const struct frame *frame,
                           const struct op *const ops[], int n)
{
    const struct transform_context *context = &pipeline->context;
    const struct backend_driver *driver = context->lease->driver;
    const struct image *source = &frame->image;
    size_t bytes = driver->plan_need(source, ops, n, frames_in_flight(driver)).device;
    if (source->memory == MEMORY_CUDA)
        bytes += budget_nvdec(frame->codec, source->width, source->height,
                              source->format == PIXEL_P010 ? 10 : 8, frame->surfaces);
    for (int i = 0; driver->export_open && i < pipeline->subscriptions->n; i++)
        if (pipeline->works[i] &&
            pipeline->subscriptions->list[i].output->config->memory == MEMORY_CUDA)
            bytes += pool_region_need(REGION_DEVICE,
                                      pipeline->subscriptions->list[i].output->config->slots,
                                      pipeline->op[i].dst_bytes)
                         .device;
    return bytes;
}

static int open_plan(struct transform *pipeline, const struct frame *frame,
                     const struct op *const ops[], int n)
{
    const struct transform_context *context = &pipeline->context;
    const struct device_lease *lease = context->lease;
    size_t left, bytes = device_bytes(pipeline, frame, ops, n);
    int rc = device_reserve(lease, bytes, &left);
    if (rc == 0) {
        pipeline->reserved = bytes;
        rc = lease->driver->plan_open(lease->backend, &pipeline->plan, &frame->image, ops, n,
                                      frames_in_flight(lease->driver));
        left = 0;
    }
    if (rc == -ENOMEM && lease->driver->device_bytes)
        rc = -ENOSPC;
    if (rc == -ENOSPC)
        note_memory(pipeline, bytes, left);
    return rc;
}

// Returns how many ops there are, or -ENOMEM. An output that cannot be made from such a source
// stays without one.
static int make_ops(struct transform *pipeline, const struct image *source, const struct op *ops[])
{
    int n = 0;
    for (int i = 0; i < pipeline->subscriptions->n; i++) {
        int rc = op_init(&pipeline->op[i], &pipeline->subscriptions->list[i].op, source);
        if (rc == -ENOMEM)
            return rc;
        if (rc < 0) {
            note_output(pipeline, pipeline->subscriptions->list[i].output->config->name, rc);
            continue;
        }
        pipeline->works[i] = true;
        pipeline->index[i] = n;
        ops[n++] = &pipeline->op[i];
    }
    return n;
}

// A hold-up within the time to catch up took some of that time, and brings more frames.
void transform_delayed(struct transform *pipeline, int64_t ns)
{
    int64_t now = monotonic_ns();
    if (ns < HOLD_UP_NS)
        return;
    if (pipeline->catches_up_until_ns > now)
        pipeline->catches_up_until_ns += 2 * ns;
    else
        pipeline->catches_up_until_ns = now + ns + BURST_NS;
}

// Makes the ops and the plan for pictures like this frame's.
static int rebuild(struct transform *pipeline, const struct frame *frame)
{
    const struct op *ops[PLAN_OPS_MAX];
    const int64_t begun_ns = monotonic_ns();
    transform_drain(pipeline);
    pipeline->source = frame->image;
    pipeline->notice[0] = 0;
    int rc = make_ops(pipeline, &frame->image, ops);
    if (rc > 0)
        rc = open_plan(pipeline, frame, ops, rc);
    if (rc < 0)
        transform_drain(pipeline);
    transform_delayed(pipeline, monotonic_ns() - begun_ns);
    return rc;
}

static void release_work(struct work *work)
{
    struct transform *pipeline = work->pipeline;
    frame_release(&work->frame);
    memset(work->result, 0, sizeof work->result);
    pthread_mutex_lock(&pipeline->lock);
    work->busy = false;
    pthread_cond_signal(&pipeline->idle);
    pthread_mutex_unlock(&pipeline->lock);
}

static struct work *find_idle(struct transform *pipeline)
{
    const int depth = frames_in_flight(pipeline->context.lease->driver);
    for (int i = 0; i < depth; i++)
        if (!pipeline->work[i].busy)
            return &pipeline->work[i];
    return NULL;
}

static bool any_waits(const struct subscriptions *outputs)
{
    for (int i = 0; i < outputs->n; i++)
        if (outputs->list[i].output->config->overflow == OVERFLOW_WAIT)
            return true;
    return false;
}

// How long a frame may wait for the backend. Half its interval falls behind no camera that sends at
// its nominal rate, however long it lasts.
static int64_t patience_ns(const struct subscriptions *outputs, int rate_num, int rate_den)
{
    if (any_waits(outputs))
        return INT64_MAX;
    int64_t interval = rate_num > 0 ? INT64_C(1000000000) * rate_den / rate_num : NOMINAL_NS;
    return interval < NOMINAL_NS * 5 ? interval / 2 : NOMINAL_NS * 5 / 2;
}

// Waits until a work is idle, the pipeline is woken to stop, or CLOCK_MONOTONIC has reached
// `until_ns`.
static struct work *wait_for_idle(struct transform *pipeline, int64_t until_ns)
{
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    struct work *work;
    while (!(work = find_idle(pipeline)) && !atomic_load(pipeline->context.stop))
        if (pthread_cond_timedwait(&pipeline->idle, &pipeline->lock, &until) != 0)
            return find_idle(pipeline);
    return work;
}

// NULL where the backend has its hands full for longer than the frame may wait. A burst (what was
// read while probing comes all at once, and other cameras start too) may wait for longer: what is
// behind it is in the socket.
static struct work *take_work(struct transform *pipeline, int64_t patience)
{
    int64_t now = monotonic_ns(), until = INT64_MAX;
    const bool catches_up = now < pipeline->catches_up_until_ns;
    if (patience < INT64_MAX)
        until = now + patience + BURST_NS - pipeline->waited_ns;
    if (until < pipeline->catches_up_until_ns)
        until = pipeline->catches_up_until_ns;
    pthread_mutex_lock(&pipeline->lock);
    struct work *work = wait_for_idle(pipeline, until);
    if (work)
        work->busy = true;
    pthread_mutex_unlock(&pipeline->lock);
    if (patience < INT64_MAX && !catches_up) {
        int64_t waited = pipeline->waited_ns + monotonic_ns() - now - patience;
        pipeline->waited_ns = waited < 0 ? 0 : waited < BURST_NS ? waited : BURST_NS;
    }
    return work;
}

void transform_lost(struct transform *pipeline)
{
    offer_lost(pipeline->subscriptions, LOSS_DAMAGED);
}

// Any thread. What the device itself fails with is up to the devices; the rest is the
// caller's, and stays what it was.
static int report(const struct transform *pipeline, int rc)
{
    if (rc != -EIO && rc != -ENODEV)
        return rc;
    device_failed(pipeline->context.lease, rc);
    return 0;
}

static void settle(struct work *work, int status)
{
    struct transform *pipeline = work->pipeline;
    int64_t now = monotonic_ns();
    stage_job_ends(pipeline->context.stages, now);
    for (int i = 0; i < pipeline->subscriptions->n; i++) {
        struct output *output = pipeline->subscriptions->list[i].output;
        if (!work->result[i])
            continue;
        if (status == 0)
            latency_observe(&output->latency, now - work->frame.info.received_ns);
        pool_complete(output->pool, work->result[i], 0, status);
        event_post(pipeline->context.events, &output->letter);
    }
    release_work(work);
}

// Backend thread.
static void job_done(struct job *job, int status)
{
    struct work *work = job->opaque;
    const struct frame_info *info = &work->frame.info;
    histogram_observe(work->pipeline->context.decode, info->decoded_ns - info->received_ns);
    histogram_observe(work->pipeline->context.process, monotonic_ns() - info->decoded_ns);
    report(work->pipeline, status);
    settle(work, status);
}

// Gives the frame in `work` to every output that wants it, as one job.
static int submit(struct transform *pipeline, struct work *work, int rate_num, int rate_den)
{
    const struct transform_context *context = &pipeline->context;
    rate_limit(&pipeline->rate, &rate_num, &rate_den);
    struct offer offer = {
        .info = &work->frame.info,
        .rate_num = rate_num,
        .rate_den = rate_den,
        .wait_until_ns = pipeline->catches_up_until_ns,
        .interrupted = &pipeline->interrupted,
        .stop = context->stop,
        .stages = context->stages,
    };
    bool wanted = false;
    work->job = (struct job){.src = work->frame.image, .done = job_done, .opaque = work};
    for (int i = 0; i < pipeline->subscriptions->n; i++) {
        const struct op *op = pipeline->works[i] ? &pipeline->op[i] : NULL;
        struct result *result = offer_frame(pipeline->subscriptions->list[i].output, op, &offer);
        if (!result)
            continue;
        work->result[i] = result;
        work->job.result[pipeline->index[i]] = result->data;
        work->job.result_memory[pipeline->index[i]] = result->memory;
        work->job.filled[pipeline->index[i]] = result->item[0].valid_op == op->serial;
        result->item[0].valid_op = op->serial;
        wanted = true;
    }
    transform_delayed(pipeline, offer.opening_ns);
    if (!wanted) {
        release_work(work);
        return 0;
    }
    stage_job_begins(context->stages);
    int rc = context->lease->driver->submit(pipeline->plan, &work->job);
    if (rc < 0)
        settle(work, rc);
    return rc;
}

// Rebuilds where the source looks different from before. -EAGAIN: that failed a moment ago.
static int follow_geometry(struct transform *pipeline, const struct frame *frame)
{
    const struct image *source = &frame->image;
    if (same_geometry(&pipeline->source, source))
        return 0;
    if (monotonic_ns() < pipeline->retry_ns)
        return -EAGAIN;
    int rc = rebuild(pipeline, frame);
    pipeline->retry_ns = rc < 0 ? monotonic_ns() + RETRY_NS : 0;
    return rc;
}

// In a new epoch timestamps may start anew.
static void follow_epoch(struct transform *pipeline, uint32_t epoch)
{
    if (pipeline->epoch == epoch)
        return;
    pipeline->epoch = epoch;
    rate_restart(&pipeline->rate);
    for (int i = 0; i < pipeline->subscriptions->n; i++)
        rate_restart(&pipeline->subscriptions->list[i].output->rate);
}

int transform_submit(struct transform *pipeline, struct frame *frame)
{
    const int rate_num = frame->rate_num, rate_den = frame->rate_den;
    struct work *work = NULL;
    enum loss reason = LOSS_THINNED;
    int rc = 0;

    stage_enter(pipeline->context.stages, STAGE_SUBMIT, 0);
    follow_epoch(pipeline, frame->info.epoch);
    if (!rate_keeps(&pipeline->rate, frame->info.pts_ns))
        goto lost;
    reason = LOSS_BACKEND;
    rc = follow_geometry(pipeline, frame);
    if (rc < 0)
        goto lost;
    work = take_work(pipeline, patience_ns(pipeline->subscriptions, rate_num, rate_den));
    reason = atomic_load(pipeline->context.stop) ? LOSS_STOPPING : LOSS_BACKEND_BUSY;
    if (!work)
        goto lost;
    work->frame = *frame;
    *frame = (struct frame){0};
    return report(pipeline, submit(pipeline, work, rate_num, rate_den));
lost:
    frame_release(frame);
    offer_lost(pipeline->subscriptions, reason);
    return rc == -EAGAIN ? 0 : report(pipeline, rc);
}
