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
    cuda_link_measure(link, backend->device);
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
