// The CUDA backend's analyser: statistics, the fingerprint and the step of motion follow each other
// on a stream, one copy brings what they found, and the camera's thread sleeps until it is there.
// A camera's memory is one allocation on the device and one of the host; the result lies alike in
// both.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/fingerprint_cuda.h"
#include "kernels/cuda/motion_cuda.h"
#include "kernels/cuda/statistics_cuda.h"

enum { ALIGNMENT = 256 };

// Ahead of a picture's cells and the list of those that moved.
struct found {
    struct luma_statistics luma;
    uint64_t fingerprint;
};

// Offsets. Those of the result are from its start.
struct analyser_layout {
    size_t statistics, fingerprint, motion, result; // in device memory
    size_t cells, changes, result_bytes;
};

struct analyser {
    struct backend *backend;
    const struct analysis *analysis;
    struct analyser_layout layout;
    uint8_t *device, *pinned;
    cudaStream_t stream; // the backend's
    struct motion_cuda motion;
    cudaEvent_t made, done; // the picture, and its result
    struct motion_boxes boxes;
    void *workspace; // of motion_boxes
};

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static struct analyser_layout layout_of(const struct analysis *analysis)
{
    const struct statistics *s = &analysis->statistics;
    struct analyser_layout l;
    l.statistics = 0;
    l.fingerprint = round_up(STATISTICS_CUDA_BYTES);
    l.motion = l.fingerprint + round_up(sizeof analysis->fingerprint);
    l.result = l.motion + round_up(motion_cuda_bytes(&analysis->motion));
    l.cells = round_up(sizeof(struct found));
    l.changes = l.cells + round_up((size_t)(s->columns * s->rows) * sizeof(uint32_t));
    l.result_bytes = l.changes + motion_changes_bytes(&analysis->motion);
    return l;
}

// --- open

static cudaError_t kernels_load(void)
{
    CUDA_TRY(statistics_cuda_load());
    CUDA_TRY(fingerprint_cuda_load());
    return motion_cuda_load();
}

static cudaError_t event_init(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventBlockingSync | cudaEventDisableTiming);
}

static cudaError_t memory_init(struct analyser *analyser)
{
    const struct analyser_layout *l = &analyser->layout;
    const struct analysis *analysis = analyser->analysis;
    const size_t bytes = l->result + l->result_bytes;
    CUDA_TRY(cudaMalloc((void **)&analyser->device, bytes));
    CUDA_TRY(cudaHostAlloc((void **)&analyser->pinned, l->result_bytes, cudaHostAllocPortable));
    uint8_t *const result = analyser->device + l->result;
    CUDA_TRY(cudaMemsetAsync(analyser->device + l->statistics, 0, STATISTICS_CUDA_BYTES,
                             analyser->stream));
    CUDA_TRY(cudaMemcpyAsync(analyser->device + l->fingerprint, &analysis->fingerprint,
                             sizeof analysis->fingerprint, cudaMemcpyHostToDevice,
                             analyser->stream));
    return motion_cuda_init(&analyser->motion, &analysis->motion, analyser->device + l->motion,
                            (const uint32_t *)(result + l->cells),
                            (struct motion_changes *)(result + l->changes), analyser->stream);
}

void cuda_analyser_close(struct analyser *analyser)
{
    if (!analyser)
        return;
    cudaSetDevice(analyser->backend->device);
    cudaStreamSynchronize(analyser->stream);
    if (analyser->made)
        cudaEventDestroy(analyser->made);
    if (analyser->done)
        cudaEventDestroy(analyser->done);
    cudaFreeHost(analyser->pinned);
    cudaFree(analyser->device);
    cudaGetLastError();
    free(analyser->workspace);
    free(analyser);
}

static cudaStream_t stream_next(struct backend *backend)
{
    pthread_mutex_lock(&backend->lock);
    cudaStream_t stream = backend->analysing[backend->analysers++ % ANALYSING_STREAMS];
    pthread_mutex_unlock(&backend->lock);
    return stream;
}

int cuda_analyser_open(struct backend *backend, struct analyser **ret,
                       const struct analysis *analysis, const struct image *src)
{
    if (src->memory != MEMORY_CUDA)
        return -EINVAL;
    struct analyser *analyser = (struct analyser *)calloc(1, sizeof *analyser);
    if (!analyser)
        return -ENOMEM;
    analyser->backend = backend;
    analyser->analysis = analysis;
    analyser->layout = layout_of(analysis);
    analyser->stream = stream_next(backend);
    analyser->workspace =
        aligned_alloc(64, (motion_workspace_bytes(&analysis->motion) + 63) / 64 * 64);
    cudaError_t error = cudaSetDevice(backend->device);
    if (error == cudaSuccess)
        error = kernels_load();
    if (error == cudaSuccess)
        error = event_init(&analyser->made);
    if (error == cudaSuccess)
        error = event_init(&analyser->done);
    if (error == cudaSuccess)
        error = memory_init(analyser);
    const int rc = analyser->workspace ? cuda_errno(error) : -ENOMEM;
    if (rc)
        cuda_analyser_close(analyser);
    else
        *ret = analyser;
    return rc;
}

// --- a picture

// A decoder makes pictures by work on the legacy default stream.
static cudaError_t put(struct analyser *analyser, const struct image *src)
{
    const struct analyser_layout *l = &analyser->layout;
    uint8_t *const device = analyser->device, *const result = device + l->result;
    struct found *const found = (struct found *)result;
    uint32_t *const cells = (uint32_t *)(result + l->cells);
    const struct statistics_cuda_picture picture = {&analyser->analysis->statistics, *src,
                                                    device + l->statistics, &found->luma, cells};
    const struct fingerprint_cuda_picture hashed = {
        (const struct fingerprint_cells *)(device + l->fingerprint), cells, &found->fingerprint};
    const struct motion_cuda *const camera = &analyser->motion;
    CUDA_TRY(cudaEventRecord(analyser->made, cudaStreamLegacy));
    CUDA_TRY(cudaStreamWaitEvent(analyser->stream, analyser->made, 0));
    CUDA_TRY(statistics_cuda_launch(&picture, 1, analyser->stream));
    CUDA_TRY(fingerprint_cuda_cells(&hashed, 1, analyser->stream));
    CUDA_TRY(motion_cuda_launch(&camera, 1, analyser->stream));
    CUDA_TRY(cudaMemcpyAsync(analyser->pinned, result, l->result_bytes, cudaMemcpyDeviceToHost,
                             analyser->stream));
    return cudaEventRecord(analyser->done, analyser->stream);
}

static cudaError_t put_and_wait(struct analyser *analyser, const struct image *src)
{
    struct backend *backend = analyser->backend;
    CUDA_TRY(cudaSetDevice(backend->device));
    pthread_mutex_lock(&backend->submitting);
    cudaError_t error = put(analyser, src);
    pthread_mutex_unlock(&backend->submitting);
    return error ? error : cudaEventSynchronize(analyser->done);
}

int cuda_analyse(struct analyser *analyser, const struct image *src, struct analysis_result *ret)
{
    struct backend *backend = analyser->backend;
    const struct analyser_layout *l = &analyser->layout;
    pthread_mutex_lock(&backend->lock);
    bool failed = backend->failed;
    pthread_mutex_unlock(&backend->lock);
    if (failed)
        return -EIO;
    if (put_and_wait(analyser, src) != cudaSuccess) {
        cudaStreamSynchronize(analyser->stream); // nothing of the picture is read any more
        cudaGetLastError();
        pthread_mutex_lock(&backend->lock);
        backend->failed = true;
        pthread_mutex_unlock(&backend->lock);
        return -EIO;
    }
    const struct found *found = (const struct found *)analyser->pinned;
    const struct motion_changes *changes =
        (const struct motion_changes *)(analyser->pinned + l->changes);
    motion_boxes(&analyser->analysis->motion, changes, &analyser->boxes, analyser->workspace);
    ret->luma = found->luma;
    ret->fingerprint = found->fingerprint;
    ret->cells = (const uint32_t *)(analyser->pinned + l->cells);
    ret->motion = &analyser->boxes;
    return 0;
}
