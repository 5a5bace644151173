// The CUDA backend. A thread of its own waits for the jobs in order of submission and reports them,
// not a host function on a stream: `done` gives decoder surfaces back, and that calls CUDA.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda.h"

enum { STREAMS_DEFAULT = 8 };

int cuda_errno(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return 0;
    case cudaErrorMemoryAllocation:
        return -ENOMEM;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
    case cudaErrorNoKernelImageForDevice:
        return -ENODEV;
    default:
        return -EIO;
    }
}

cudaError_t cuda_copy(struct backend *backend, void *dst, const void *src, size_t bytes)
{
    CUDA_TRY(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, backend->aside));
    return cudaStreamSynchronize(backend->aside);
}

// --- completion

static struct job *next_job(struct backend *backend)
{
    pthread_mutex_lock(&backend->lock);
    while (!backend->head && !backend->closing)
        pthread_cond_wait(&backend->changed, &backend->lock);
    struct job *job = backend->head;
    if (job)
        backend->head = job->next;
    pthread_mutex_unlock(&backend->lock);
    return job;
}

// Any error fails the backend for good: what the device did to other jobs is not known then. The
// lane is idle again before `done`, so that whoever learns of it there can submit at once; the
// plan lives until `done` has returned.
static void report(struct backend *backend, struct job *job, int status)
{
    struct lane *lane = (struct lane *)job->lane;
    struct plan *plan = lane->plan;

    pthread_mutex_lock(&backend->lock);
    backend->failed |= status != 0;
    lane->next = plan->idle;
    plan->idle = lane;
    pthread_mutex_unlock(&backend->lock);

    job->done(job, status);

    pthread_mutex_lock(&backend->lock);
    plan->pending--;
    pthread_cond_broadcast(&backend->changed);
    pthread_mutex_unlock(&backend->lock);
}

static void *complete(void *argument)
{
    struct backend *backend = (struct backend *)argument;
    struct job *job;

    cudaSetDevice(backend->device); // where it fails, so does every wait
    while ((job = next_job(backend))) {
        cudaError_t error = cuda_job_wait((struct lane *)job->lane, job);
        report(backend, job, error == cudaSuccess ? 0 : -EIO);
    }
    return NULL;
}

// --- backend

// libavcodec decodes in the same primary context and refuses one that spins in its waits, so the
// context is made with that flag.
static cudaError_t device_init(struct backend *backend)
{
    struct cudaDeviceProp properties;
    int devices = 0;

    CUDA_TRY(cudaGetDeviceCount(&devices));
    if (backend->device < 0 || backend->device >= devices)
        return cudaErrorInvalidDevice;
    CUDA_TRY(cudaInitDevice(backend->device, cudaDeviceScheduleBlockingSync,
                            cudaInitDeviceFlagsAreValid));
    CUDA_TRY(cudaSetDevice(backend->device));
    CUDA_TRY(cudaGetDeviceProperties(&properties, backend->device));
    snprintf(backend->description, sizeof backend->description, "%s, %d streams", properties.name,
             backend->streams);
    return cudaSuccess;
}

static cudaError_t stream_init(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
}

static cudaError_t streams_init(struct backend *backend)
{
    CUDA_TRY(stream_init(&backend->upload));
    CUDA_TRY(stream_init(&backend->aside));
    for (int i = 0; i < backend->streams; i++)
        CUDA_TRY(stream_init(&backend->stream[i]));
    return cudaSuccess;
}

static void stream_finish(cudaStream_t stream)
{
    if (stream)
        cudaStreamDestroy(stream);
}

static void cuda_close(struct backend *backend)
{
    if (!backend)
        return;
    if (backend->has_completer) {
        pthread_mutex_lock(&backend->lock);
        backend->closing = true;
        pthread_cond_broadcast(&backend->changed);
        pthread_mutex_unlock(&backend->lock);
        pthread_join(backend->completer, NULL);
        cudaSetDevice(backend->device);
    }
    stream_finish(backend->upload);
    stream_finish(backend->aside);
    for (int i = 0; i < backend->streams; i++)
        stream_finish(backend->stream[i]);
    pthread_cond_destroy(&backend->changed);
    pthread_mutex_destroy(&backend->lock);
    free(backend);
}

static int cuda_open(struct backend **ret, const struct backend_options *options)
{
    struct backend *backend = (struct backend *)calloc(1, sizeof *backend);
    if (!backend)
        return -ENOMEM;
    int streams = options->streams > 0 ? options->streams : STREAMS_DEFAULT;
    backend->device = options->device;
    backend->streams = streams < CUDA_STREAMS_MAX ? streams : CUDA_STREAMS_MAX;
    backend->band_bytes = options->band_bytes;
    pthread_mutex_init(&backend->lock, NULL);
    pthread_cond_init(&backend->changed, NULL);

    int error = cuda_errno(device_init(backend));
    if (!error)
        error = cuda_errno(streams_init(backend));
    if (!error)
        error = -pthread_create(&backend->completer, NULL, complete, backend);
    backend->has_completer = !error;
    if (error)
        cuda_close(backend);
    else
        *ret = backend;
    return error;
}

static const char *describe(struct backend *backend)
{
    return backend->description;
}

static void *cuda_alloc(struct backend *backend, size_t bytes)
{
    void *memory = NULL;
    if (cudaSetDevice(backend->device) == cudaSuccess &&
        cudaHostAlloc(&memory, bytes, cudaHostAllocPortable) == cudaSuccess)
        return memory;
    return NULL;
}

static void cuda_free(struct backend *backend, void *memory)
{
    if (memory && cudaSetDevice(backend->device) == cudaSuccess)
        cudaFreeHost(memory);
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
        pthread_cond_wait(&backend->changed, &backend->lock);
    pthread_mutex_unlock(&backend->lock);

    cudaSetDevice(backend->device);
    cuda_plan_finish(plan);
    free(plan);
}

static int take_lane(struct plan *plan, struct job *job, unsigned *turn)
{
    struct backend *backend = plan->backend;
    int error = 0;

    pthread_mutex_lock(&backend->lock);
    struct lane *lane = plan->idle;
    if (backend->failed) {
        error = -EIO;
    } else if (!lane) {
        error = -EBUSY;
    } else {
        plan->idle = lane->next;
        plan->pending++;
        job->lane = lane;
        *turn = backend->turn % backend->streams;
        backend->turn += plan->steps;
    }
    pthread_mutex_unlock(&backend->lock);
    return error;
}

static void enqueue(struct backend *backend, struct job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&backend->lock);
    if (backend->head)
        backend->tail->next = job;
    else
        backend->head = job;
    backend->tail = job;
    pthread_cond_broadcast(&backend->changed);
    pthread_mutex_unlock(&backend->lock);
}

// A job that breaks off half way may still be written to by the device: it fails through `done`,
// once nothing of it is left.
static int submit(struct plan *plan, struct job *job)
{
    unsigned turn;
    if (plan->src.memory == MEMORY_CUDA && job->src.memory != MEMORY_CUDA)
        return -EINVAL; // the plan has no buffers to upload into
    int error = take_lane(plan, job, &turn);
    if (error)
        return error;
    cudaSetDevice(plan->backend->device); // where it fails, so does the start
    cuda_job_start((struct lane *)job->lane, job, turn);
    enqueue(plan->backend, job);
    return 0;
}

extern "C" const struct backend_driver cuda_backend = {
    .name = "cuda",
    .takes_cuda = true,
    .open = cuda_open,
    .close = cuda_close,
    .describe = describe,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .plan_open = plan_open,
    .plan_close = plan_close,
    .submit = submit,
};
