// The CUDA backend. Its own thread waits for the jobs in order of submission and reports them. A
// host function on a stream cannot do this: `done` releases decoder surfaces, which calls CUDA.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"

cudaError_t cuda_copy(struct backend *backend, void *dst, const void *src, size_t bytes)
{
    CUDA_TRY(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, backend->aside));
    return cudaStreamSynchronize(backend->aside);
}

// --- completion

// Takes all jobs in flight, in order of submission; waits if there are none. NULL: closing.
static struct job *take_jobs(struct backend *backend)
{
    pthread_mutex_lock(&backend->lock);
    while (!backend->head && !backend->closing)
        pthread_cond_wait(&backend->work, &backend->lock);
    struct job *jobs = backend->head;
    backend->head = backend->tail = NULL;
    pthread_mutex_unlock(&backend->lock);
    return jobs;
}

static void add(struct device_busy *sum, const struct device_busy *busy)
{
    sum->upload += busy->upload;
    sum->kernel += busy->kernel;
    sum->download += busy->download;
}

// Returns the status of a failed job: -EIO if the context is lost, which every further call
// reports, else -EREMOTEIO for an error of this job alone.
static int failed_status(struct backend *backend)
{
    cudaGetLastError();
    const cudaError_t error = cudaStreamQuery(backend->aside);
    return error == cudaSuccess || error == cudaErrorNotReady ? -EREMOTEIO : -EIO;
}

// A lost context fails the backend for good. The slot is idle again before `done`, which may submit
// the next job; the plan lives until `done` has returned.
static void report(struct backend *backend, struct job *job, int status)
{
    struct job_slot *slot = (struct job_slot *)job->slot;
    struct plan *plan = slot->plan;
    const struct device_busy busy = status ? device_busy{} : cuda_job_busy(slot, job);

    pthread_mutex_lock(&backend->lock);
    backend->failed |= status == -EIO;
    add(&backend->busy, &busy);
    if (slot->watch)
        slot->watch->taken = false;
    slot->next = plan->idle;
    plan->idle = slot;
    pthread_mutex_unlock(&backend->lock);

    job->done(job, status);

    pthread_mutex_lock(&backend->lock);
    if (--plan->pending == 0)
        pthread_cond_broadcast(&backend->finished);
    pthread_mutex_unlock(&backend->lock);
}

// Sleeps only for the oldest unfinished job: jobs that finished meanwhile are reported with it,
// without waiting for another device interrupt.
static void *complete(void *argument)
{
    struct backend *backend = (struct backend *)argument;
    struct job *job, *next;

    pthread_setname_np(pthread_self(), "cuda jobs");
    cudaSetDevice(backend->device); // if this fails, so does every wait
    while ((job = take_jobs(backend))) {
        for (; job; job = next) {
            next = job->next;
            cudaError_t error = cuda_job_wait((struct job_slot *)job->slot, job);
            report(backend, job, error == cudaSuccess ? 0 : failed_status(backend));
        }
    }
    return NULL;
}

// --- the link: copies of pinned memory in each direction alone, in both together, and small ones

enum {
    COPY_BYTES = 2 << 20,
    COPIES = 12,
    LARGE_COPIES = 4, // followed by small ones
    SMALL_BYTES = 16 << 10,
    SMALL_COPIES = 16,
    RUNS = 3,
};

struct bench {
    uint8_t *host, *device; // two buffers of COPY_BYTES each: uploads use the first ones
    cudaStream_t up, down;
    cudaEvent_t begin[2], end[2]; // of up and down
};

static cudaError_t bench_init(struct bench *bench)
{
    CUDA_TRY(cudaHostAlloc((void **)&bench->host, 2 * COPY_BYTES, cudaHostAllocPortable));
    memset(bench->host, 0x5A, 2 * COPY_BYTES);
    CUDA_TRY(cudaMalloc((void **)&bench->device, 2 * COPY_BYTES));
    CUDA_TRY(cudaStreamCreateWithFlags(&bench->up, cudaStreamNonBlocking));
    CUDA_TRY(cudaStreamCreateWithFlags(&bench->down, cudaStreamNonBlocking));
    for (int i = 0; i < 2; i++) {
        CUDA_TRY(cudaEventCreateWithFlags(&bench->begin[i], cudaEventBlockingSync));
        CUDA_TRY(cudaEventCreateWithFlags(&bench->end[i], cudaEventBlockingSync));
    }
    return cudaMemcpy(bench->device, bench->host, 2 * COPY_BYTES, cudaMemcpyHostToDevice);
}

static void bench_finish(struct bench *bench)
{
    for (int i = 0; i < 2; i++) {
        if (bench->begin[i])
            cudaEventDestroy(bench->begin[i]);
        if (bench->end[i])
            cudaEventDestroy(bench->end[i]);
    }
    if (bench->up)
        cudaStreamDestroy(bench->up);
    if (bench->down)
        cudaStreamDestroy(bench->down);
    cudaFree(bench->device);
    cudaFreeHost(bench->host);
}

// Returns the seconds between the events of a direction.
static cudaError_t elapsed(const struct bench *bench, int direction, double *seconds)
{
    float ms = 0;
    CUDA_TRY(cudaEventSynchronize(bench->end[direction]));
    CUDA_TRY(cudaEventElapsedTime(&ms, bench->begin[direction], bench->end[direction]));
    *seconds = ms / 1e3;
    return cudaSuccess;
}

static cudaError_t copy_up(const struct bench *bench, size_t bytes)
{
    return cudaMemcpyAsync(bench->device, bench->host, bytes, cudaMemcpyHostToDevice, bench->up);
}

static cudaError_t copy_down(const struct bench *bench, size_t bytes)
{
    return cudaMemcpyAsync(bench->host + COPY_BYTES, bench->device + COPY_BYTES, bytes,
                           cudaMemcpyDeviceToHost, bench->down);
}

// Times COPIES large copies in each enabled direction, in parallel.
static cudaError_t time_copies(struct bench *bench, bool up, bool down, double seconds[2])
{
    CUDA_TRY(cudaEventRecord(bench->begin[0], bench->up));
    CUDA_TRY(cudaEventRecord(bench->begin[1], bench->down));
    for (int i = 0; i < COPIES; i++) {
        if (up)
            CUDA_TRY(copy_up(bench, COPY_BYTES));
        if (down)
            CUDA_TRY(copy_down(bench, COPY_BYTES));
    }
    CUDA_TRY(cudaEventRecord(bench->end[0], bench->up));
    CUDA_TRY(cudaEventRecord(bench->end[1], bench->down));
    CUDA_TRY(elapsed(bench, 0, &seconds[0]));
    return elapsed(bench, 1, &seconds[1]);
}

// Large copies keep the queue filled while the CPU queues small ones after them.
static cudaError_t time_small(struct bench *bench, double *seconds)
{
    CUDA_TRY(cudaEventRecord(bench->begin[0], bench->up));
    for (int i = 0; i < LARGE_COPIES; i++)
        CUDA_TRY(copy_up(bench, COPY_BYTES));
    for (int i = 0; i < SMALL_COPIES; i++)
        CUDA_TRY(copy_up(bench, SMALL_BYTES));
    CUDA_TRY(cudaEventRecord(bench->end[0], bench->up));
    return elapsed(bench, 0, seconds);
}

// Keeps the shortest of several runs: a disturbance only makes a run longer.
static void keep_least(double *least, double seconds)
{
    if (*least == 0 || seconds < *least)
        *least = seconds;
}

struct times {
    double up, down, up_both, down_both, small; // seconds
};

static cudaError_t time_all(struct bench *bench, struct times *times)
{
    double now[2], small;
    for (int run = 0; run < RUNS; run++) {
        CUDA_TRY(time_copies(bench, true, false, now));
        keep_least(&times->up, now[0]);
        CUDA_TRY(time_copies(bench, false, true, now));
        keep_least(&times->down, now[1]);
        CUDA_TRY(time_copies(bench, true, true, now));
        keep_least(&times->up_both, now[0]);
        keep_least(&times->down_both, now[1]);
        CUDA_TRY(time_small(bench, &small));
        keep_least(&times->small, small);
    }
    return cudaSuccess;
}

// Ignores an implausible measurement.
static void set_within(double *value, double measured, double least, double most)
{
    if (measured >= least && measured <= most)
        *value = measured;
}

static void set_rates(struct link *link, const struct times *times)
{
    const double bytes = (double)COPY_BYTES * COPIES;
    set_within(&link->up, bytes / times->up, 1e8, 1e12);
    set_within(&link->down, bytes / times->down, 1e8, 1e12);
    link->up_both = link->up;
    link->down_both = link->down;
    set_within(&link->up_both, bytes / times->up_both, 1e8, link->up);
    set_within(&link->down_both, bytes / times->down_both, 1e8, link->down);
    const double small = times->small - (double)LARGE_COPIES * COPY_BYTES / link->up;
    set_within(&link->copy, small / SMALL_COPIES - SMALL_BYTES / link->up, 5e-7, 1e-5);
}

static cudaError_t measure(struct link *link, struct bench *bench, int device)
{
    struct times times = {};
    int clock_khz = 0, bus_bits = 0;
    CUDA_TRY(bench_init(bench));
    CUDA_TRY(time_all(bench, &times));
    set_rates(link, &times);

    // Twice the clock, as data uses both its edges; plain kernels reach about 0.6 of that.
    CUDA_TRY(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrMemoryClockRate, device));
    CUDA_TRY(cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, device));
    set_within(&link->kernel, 0.6 * 2e3 * clock_khz * (bus_bits / 8), 1e10, 1e14);
    return cudaSuccess;
}

// Measures with a few small copies, in some milliseconds. Values that cannot be measured stay as in
// link_default.
static void link_measure(struct link *link, int device)
{
    struct bench bench = {};
    *link = link_default;
    cuda_errno(measure(link, &bench, device));
    bench_finish(&bench);
}

// --- backend

static int count(void)
{
    int devices = 0;
    return cuda_errno(cudaGetDeviceCount(&devices)) ? 0 : devices;
}

// libavcodec decodes in the same primary context and refuses one that spins in its waits, so the
// context is created with blocking waits.
static cudaError_t device_init(struct backend *backend, struct cudaDeviceProp *properties)
{
    int devices = 0;
    CUDA_TRY(cudaGetDeviceCount(&devices));
    if (backend->device < 0 || backend->device >= devices)
        return cudaErrorInvalidDevice;
    CUDA_TRY(cudaInitDevice(backend->device, cudaDeviceScheduleBlockingSync,
                            cudaInitDeviceFlagsAreValid));
    CUDA_TRY(cudaSetDevice(backend->device));
    CUDA_TRY(cudaGetDeviceProperties(properties, backend->device));
    backend->device_bytes = properties->totalGlobalMem;
    memcpy(backend->uuid, properties->uuid.bytes, sizeof backend->uuid);
    return cudaSuccess;
}

static void tune(struct backend *backend, const struct cudaDeviceProp *properties)
{
    struct link *link = &backend->schedule.link;
    char *text = backend->description;
    const size_t size = sizeof backend->description;
    link_measure(link, backend->device);
    if (backend->schedule.streams > 0) {
        snprintf(text, size, "%s, %d stream%s", properties->name, backend->schedule.streams,
                 backend->schedule.streams == 1 ? "" : "s");
        return;
    }
    snprintf(text, size, "%s, %d copy engine%s, %.3g GB/s up, %.3g GB/s down, streams auto",
             properties->name, properties->asyncEngineCount,
             properties->asyncEngineCount == 1 ? "" : "s", link->up / 1e9, link->down / 1e9);
}

static cudaError_t stream_init(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
}

static cudaError_t streams_init(struct backend *backend)
{
    const int n = backend->schedule.streams;
    CUDA_TRY(stream_init(&backend->aside));
    for (; backend->streams < (n > 0 ? n : STREAMS_AUTO); backend->streams++)
        CUDA_TRY(stream_init(&backend->stream[backend->streams]));
    for (int i = 0; i < ANALYSING_STREAMS; i++)
        CUDA_TRY(stream_init(&backend->analysing[i]));
    return cuda_stopwatch_init(&backend->watch);
}

static void stream_finish(cudaStream_t stream)
{
    if (stream)
        cudaStreamDestroy(stream);
}

// On a failed device every call returns at once; reset cleans up the rest.
static void cuda_close(struct backend *backend)
{
    if (!backend)
        return;
    if (backend->has_completer) {
        pthread_mutex_lock(&backend->lock);
        backend->closing = true;
        pthread_cond_signal(&backend->work);
        pthread_mutex_unlock(&backend->lock);
        pthread_join(backend->completer, NULL);
        cudaSetDevice(backend->device);
    }
    cuda_unpin_all(backend);
    cuda_stopwatch_finish(&backend->watch);
    stream_finish(backend->aside);
    for (int i = 0; i < ANALYSING_STREAMS; i++)
        stream_finish(backend->analysing[i]);
    for (int i = 0; i < backend->streams; i++)
        stream_finish(backend->stream[i]);
    cudaGetLastError();
    pthread_cond_destroy(&backend->finished);
    pthread_cond_destroy(&backend->work);
    pthread_mutex_destroy(&backend->lock);
    pthread_mutex_destroy(&backend->submitting);
    free(backend);
}

static int cuda_open(struct backend **ret, const struct backend_options *options)
{
    struct backend *backend = (struct backend *)calloc(1, sizeof *backend);
    struct cudaDeviceProp properties;
    if (!backend)
        return -ENOMEM;
    backend->device = options->device;
    backend->schedule.streams =
        options->streams < CUDA_STREAMS_MAX ? options->streams : CUDA_STREAMS_MAX;
    backend->schedule.band_bytes = options->band_bytes;
    pthread_mutex_init(&backend->submitting, NULL);
    pthread_mutex_init(&backend->lock, NULL);
    pthread_cond_init(&backend->work, NULL);
    pthread_cond_init(&backend->finished, NULL);

    int error = cuda_errno(device_init(backend, &properties));
    if (!error)
        error = cuda_errno(streams_init(backend));
    if (!error) {
        tune(backend, &properties);
        error = -pthread_create(&backend->completer, NULL, complete, backend);
    }
    backend->has_completer = !error;
    if (error)
        cuda_close(backend);
    else
        *ret = backend;
    return error;
}

// Destroys the primary context, with everything made in it and its sticky error.
static void cuda_reset(const struct backend_options *options)
{
    cudaSetDevice(options->device); // even if it returns that error
    cudaDeviceReset();
    cudaGetLastError();
}

static const char *describe(struct backend *backend)
{
    return backend->description;
}

static size_t device_bytes(struct backend *backend)
{
    return backend->device_bytes;
}

static const uint8_t *device_uuid(struct backend *backend)
{
    return backend->uuid;
}

static struct device_busy busy(struct backend *backend)
{
    pthread_mutex_lock(&backend->lock);
    const struct device_busy sum = backend->busy;
    pthread_mutex_unlock(&backend->lock);
    return sum;
}

// --- plans and jobs

static int plan_open(struct backend *backend, struct plan **ret, const struct image *src,
                     const struct op *const ops[], int n, int depth)
{
    if (n < 1 || n > PLAN_OPS_MAX || depth < 1)
        return -EINVAL;
    struct plan *plan = (struct plan *)calloc(1, sizeof *plan);
    if (!plan)
        return -ENOMEM;
    int error = cuda_errno(cudaSetDevice(backend->device));
    if (!error)
        error = cuda_plan_init(plan, backend, src, ops, n, depth);
    if (error)
        free(plan);
    else
        *ret = plan;
    return error;
}

static void plan_close(struct plan *plan)
{
    if (!plan)
        return;
    struct backend *backend = plan->backend;
    pthread_mutex_lock(&backend->lock);
    while (plan->pending)
        pthread_cond_wait(&backend->finished, &backend->lock);
    pthread_mutex_unlock(&backend->lock);

    cudaSetDevice(backend->device);
    cuda_plan_finish(plan);
    cudaGetLastError();
    free(plan);
}

// Returns true if the plan has buffers for a frame in this memory.
static bool takes(const struct plan *plan, enum memory memory)
{
    switch (plan->src.memory) {
    case MEMORY_CUDA:
        return memory == MEMORY_CUDA;
    case MEMORY_PINNED:
        return memory != MEMORY_HOST;
    default:
        return true;
    }
}

static int take_slot(struct plan *plan, struct job *job, unsigned *first_stream)
{
    struct backend *backend = plan->backend;
    int error = 0;

    pthread_mutex_lock(&backend->lock);
    struct job_slot *slot = plan->idle;
    if (backend->failed) {
        error = -EIO;
    } else if (!slot) {
        error = -EBUSY;
    } else {
        plan->idle = slot->next;
        plan->pending++;
        job->slot = slot;
        slot->watch = cuda_stopwatch_take(plan);
        *first_stream = plan->schedule.rotates ? backend->first_stream : 0;
        backend->first_stream += plan->schedule.rotates ? plan->schedule.slices : 0;
    }
    pthread_mutex_unlock(&backend->lock);
    return error;
}

static void enqueue(struct backend *backend, struct job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&backend->lock);
    if (backend->head) {
        backend->tail->next = job;
    } else {
        backend->head = job;
        pthread_cond_signal(&backend->work);
    }
    backend->tail = job;
    pthread_mutex_unlock(&backend->lock);
}

// After an error half way, the device may still write to the job's results: it fails through
// `done`, once none of its work is left.
static int submit(struct plan *plan, struct job *job)
{
    unsigned first_stream;
    if (!takes(plan, job->src.memory) || !cuda_job_fits(plan, job))
        return -EINVAL;
    int error = take_slot(plan, job, &first_stream);
    if (error)
        return error;
    cudaSetDevice(plan->backend->device); // if this fails, so does the start
    cuda_job_start((struct job_slot *)job->slot, job, first_stream);
    enqueue(plan->backend, job);
    return 0;
}

extern "C" const struct backend_driver cuda_backend = {
    .name = "cuda",
    .takes_cuda = true,
    .depth = 4, // upload, kernel, download, and the next
    .count = count,
    .open = cuda_open,
    .close = cuda_close,
    .describe = describe,
    .device_bytes = device_bytes,
    .device_uuid = device_uuid,
    .busy = busy,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .export_open = cuda_export_open,
    .export_close = cuda_export_close,
    .export_write = cuda_export_write,
    .picture_copy = cuda_picture_copy,
    .plan_need = cuda_plan_need,
    .plan_open = plan_open,
    .plan_close = plan_close,
    .submit = submit,
    .analyser_open = cuda_analyser_open,
    .analyser_close = cuda_analyser_close,
    .analyse = cuda_analyse,
    .reset = cuda_reset,
};
