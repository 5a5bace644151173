// The CUDA backend's analyser. It analyses pictures of several cameras together, because a launch
// takes the host longer than a picture takes the device: the first to arrive waits a little for the
// others, launches statistics, the fingerprint and the motion step for all of them, sleeps until
// they are done, and wakes the others. A last kernel writes the results to host memory, which saves
// a copy call per picture. A camera has one allocation on the device and one on the host.
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cuda/cuda.h"

enum {
    ALIGNMENT = 256,
    TOGETHER = 32, // pictures per launch
    THREADS = 256, // per picture, to copy its result
};

// The pause between launches, per open analyser. With 165 cameras at 25 pictures a second, three or
// four pictures are analysed together, which takes 31 us of host time each instead of 85 and delays
// a picture by half a millisecond. The pictures of a few cameras do not wait.
static const int64_t SPACE_NS = 5000;
static const int64_t SPACE_MOST_NS = 1000000;
static const int64_t SLEEP_NS = 50000; // minimum, as a thread sleeps longer than requested

// The tables that do not depend on the picture.
struct tables {
    struct statistics statistics;
    struct fingerprint_cells fingerprint;
};

// Results before a picture's cells and the list of changed ones.
struct found {
    struct luma_statistics luma;
    uint64_t fingerprint;
};

// Offsets in device memory, and in host memory.
struct analyser_layout {
    size_t statistics, tables, found, cells, changes, motion, bytes;
    size_t host_grid, host_changes, host_bytes;
};

struct analyser {
    struct backend *backend;
    const struct analysis *analysis;
    struct analyser_layout layout;
    uint8_t *device, *pinned;
    struct motion_cuda motion;
    cudaEvent_t made, done; // of pictures that this one's thread launches
    struct motion_boxes boxes;
    void *workspace; // of motion_boxes

    // The picture's:
    struct image src;
    struct analyser *next; // in the list of waiting ones
    sem_t end;             // posted by the thread that launched the picture
    bool failed;
};

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static struct analyser_layout layout_of(const struct analysis *analysis)
{
    const struct statistics *s = &analysis->statistics;
    const size_t changes = round_up(motion_changes_bytes(&analysis->motion));
    struct analyser_layout l;
    l.statistics = 0;
    l.tables = round_up(STATISTICS_CUDA_BYTES);
    l.found = l.tables + round_up(sizeof(struct tables));
    l.cells = l.found + round_up(sizeof(struct found));
    l.changes = l.cells + round_up((size_t)(s->columns * s->rows) * sizeof(uint32_t));
    l.motion = l.changes + changes;
    l.bytes = l.motion + motion_cuda_bytes(&analysis->motion);
    l.host_grid = round_up(sizeof(struct found));
    l.host_changes = l.host_grid + round_up((size_t)(s->grid_columns * s->grid_rows));
    l.host_bytes = l.host_changes + changes;
    return l;
}

// --- to the host

static_assert(sizeof(struct found) % sizeof(uint32_t) == 0, "copied as words");
static_assert(sizeof(struct motion_changes) % sizeof(uint32_t) == 0, "copied as words");

struct bring_item {
    const struct statistics *statistics;
    const struct found *found;
    const uint32_t *cells;
    const struct motion_changes *changes;
    // Host memory:
    struct found *host_found;
    uint8_t *host_grid;
    struct motion_changes *host_changes;
};

struct bring_batch {
    struct bring_item item[TOGETHER];
};

static __device__ inline void words_copy(void *to, const void *from, size_t bytes)
{
    for (size_t i = threadIdx.x; i < (bytes + 3) / 4; i += THREADS)
        ((uint32_t *)to)[i] = ((const uint32_t *)from)[i];
}

// Copies the results to the host: cells as their means over the grid, and the used part of the list
// of changes. Block blockIdx.x has that picture.
static __global__ void __launch_bounds__(THREADS)
    results_bring(const __grid_constant__ struct bring_batch batch)
{
    const struct bring_item *item = &batch.item[blockIdx.x];
    const struct statistics *s = item->statistics;
    const struct motion_changes *changes = item->changes;
    for (int i = threadIdx.x; i < s->grid_columns * s->grid_rows; i += THREADS)
        item->host_grid[i] =
            statistics_mean(s, item->cells, i / s->grid_columns, i % s->grid_columns);
    words_copy(item->host_found, item->found, sizeof *item->found);
    words_copy(item->host_changes, changes, sizeof *changes + changes->count * sizeof(uint16_t));
}

// --- open

static cudaError_t kernels_load(void)
{
    struct cudaFuncAttributes attributes;
    CUDA_TRY(statistics_cuda_load());
    CUDA_TRY(fingerprint_cuda_load());
    CUDA_TRY(motion_cuda_load());
    return cudaFuncGetAttributes(&attributes, results_bring);
}

static cudaError_t event_init(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventBlockingSync | cudaEventDisableTiming);
}

static cudaError_t memory_init(struct analyser *analyser)
{
    const struct analyser_layout *l = &analyser->layout;
    const struct analysis *analysis = analyser->analysis;
    const cudaStream_t stream = analyser->backend->analysing[0];
    CUDA_TRY(cudaMalloc((void **)&analyser->device, l->bytes));
    CUDA_TRY(cudaHostAlloc((void **)&analyser->pinned, l->host_bytes, cudaHostAllocPortable));
    uint8_t *const device = analyser->device;
    struct tables *const tables = (struct tables *)(device + l->tables);
    CUDA_TRY(cudaMemsetAsync(device + l->statistics, 0, STATISTICS_CUDA_BYTES, stream));
    CUDA_TRY(cudaMemcpyAsync(&tables->statistics, &analysis->statistics, sizeof tables->statistics,
                             cudaMemcpyHostToDevice, stream));
    CUDA_TRY(cudaMemcpyAsync(&tables->fingerprint, &analysis->fingerprint,
                             sizeof tables->fingerprint, cudaMemcpyHostToDevice, stream));
    CUDA_TRY(motion_cuda_init(&analyser->motion, &analysis->motion, device + l->motion,
                              (const uint32_t *)(device + l->cells),
                              (struct motion_changes *)(device + l->changes), stream));
    return cudaStreamSynchronize(stream); // pictures may go to other streams
}

static void count_open(struct backend *backend, int more)
{
    pthread_mutex_lock(&backend->lock);
    backend->analysers += more;
    pthread_mutex_unlock(&backend->lock);
}

void cuda_analyser_close(struct analyser *analyser)
{
    if (!analyser)
        return;
    cudaSetDevice(analyser->backend->device);
    count_open(analyser->backend, -1);
    if (analyser->made)
        cudaEventDestroy(analyser->made);
    if (analyser->done)
        cudaEventDestroy(analyser->done);
    cudaFreeHost(analyser->pinned);
    cudaFree(analyser->device);
    cudaGetLastError();
    sem_destroy(&analyser->end);
    free(analyser->workspace);
    free(analyser);
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
    sem_init(&analyser->end, 0, 0);
    count_open(backend, 1);
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

// --- waiting pictures

// Returns true if nobody is about to launch the waiting pictures: then the caller must do it.
static bool join_waiting(struct analyser *analyser)
{
    struct backend *backend = analyser->backend;
    pthread_mutex_lock(&backend->lock);
    const bool leads = !backend->waiting;
    analyser->next = backend->waiting;
    backend->waiting = analyser;
    pthread_mutex_unlock(&backend->lock);
    return leads;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_until(int64_t until_ns)
{
    const struct timespec until = {.tv_sec = until_ns / 1000000000,
                                   .tv_nsec = until_ns % 1000000000};
    while (until_ns - now_ns() > SLEEP_NS &&
           clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

// Waits until the next launch is due, then takes all waiting pictures, and the stream for them. The
// next picture to arrive leads the next launch.
static struct analyser *take_waiting(struct backend *backend, cudaStream_t *ret_stream)
{
    pthread_mutex_lock(&backend->lock);
    const int64_t due_ns = backend->analysis_due_ns;
    pthread_mutex_unlock(&backend->lock);
    sleep_until(due_ns);

    pthread_mutex_lock(&backend->lock);
    struct analyser *const first = backend->waiting;
    const int64_t space_ns = backend->analysers * SPACE_NS;
    backend->waiting = NULL;
    backend->analysis_due_ns = now_ns() + (space_ns < SPACE_MOST_NS ? space_ns : SPACE_MOST_NS);
    *ret_stream = backend->analysing[backend->analyses++ % ANALYSING_STREAMS];
    pthread_mutex_unlock(&backend->lock);
    return first;
}

// --- a launch

struct together {
    struct statistics_cuda_picture picture[TOGETHER];
    struct fingerprint_cuda_picture hashed[TOGETHER];
    const struct motion_cuda *motion[TOGETHER];
    struct bring_batch bring;
    int n;
};

static void add_picture(struct together *t, const struct analyser *analyser)
{
    const struct analyser_layout *l = &analyser->layout;
    uint8_t *const device = analyser->device, *const host = analyser->pinned;
    const struct tables *const tables = (const struct tables *)(device + l->tables);
    struct found *const found = (struct found *)(device + l->found);
    uint32_t *const cells = (uint32_t *)(device + l->cells);
    const int i = t->n++;
    t->picture[i] = {&analyser->analysis->statistics, analyser->src, device + l->statistics,
                     &found->luma, cells};
    t->hashed[i] = {&tables->fingerprint, cells, &found->fingerprint};
    t->motion[i] = &analyser->motion;
    t->bring.item[i] = {&tables->statistics,
                        found,
                        cells,
                        (const struct motion_changes *)(device + l->changes),
                        (struct found *)host,
                        host + l->host_grid,
                        (struct motion_changes *)(host + l->host_changes)};
}

static cudaError_t put_together(const struct together *t, cudaStream_t stream)
{
    CUDA_TRY(statistics_cuda_launch(t->picture, t->n, stream));
    CUDA_TRY(fingerprint_cuda_cells(t->hashed, t->n, stream));
    CUDA_TRY(motion_cuda_launch(t->motion, t->n, stream));
    results_bring<<<t->n, THREADS, 0, stream>>>(t->bring);
    return cudaGetLastError();
}

// A decoder makes pictures by work on the legacy default stream.
static cudaError_t put(const struct analyser *leader, const struct analyser *first,
                       cudaStream_t stream)
{
    CUDA_TRY(cudaEventRecord(leader->made, cudaStreamLegacy));
    CUDA_TRY(cudaStreamWaitEvent(stream, leader->made, 0));
    while (first) {
        struct together together;
        for (together.n = 0; first && together.n < TOGETHER; first = first->next)
            add_picture(&together, first);
        CUDA_TRY(put_together(&together, stream));
    }
    return cudaEventRecord(leader->done, stream);
}

static cudaError_t put_and_wait(const struct analyser *leader, const struct analyser *first,
                                cudaStream_t stream)
{
    struct backend *backend = leader->backend;
    CUDA_TRY(cudaSetDevice(backend->device));
    pthread_mutex_lock(&backend->submitting);
    cudaError_t error = put(leader, first, stream);
    pthread_mutex_unlock(&backend->submitting);
    return error ? error : cudaEventSynchronize(leader->done);
}

// Wakes the others; each may start its next picture at once.
static void end_all(const struct analyser *leader, struct analyser *first, bool failed)
{
    while (first) {
        struct analyser *const analyser = first;
        first = first->next;
        analyser->failed = failed;
        if (analyser != leader)
            sem_post(&analyser->end);
    }
}

static void lead(struct analyser *leader)
{
    struct backend *backend = leader->backend;
    cudaStream_t stream;
    struct analyser *const first = take_waiting(backend, &stream);
    pthread_mutex_lock(&backend->lock);
    bool failed = backend->failed;
    pthread_mutex_unlock(&backend->lock);
    if (!failed && put_and_wait(leader, first, stream) != cudaSuccess) {
        cudaStreamSynchronize(stream); // no picture is read any more
        cudaGetLastError();
        pthread_mutex_lock(&backend->lock);
        backend->failed = failed = true;
        pthread_mutex_unlock(&backend->lock);
    }
    end_all(leader, first, failed);
}

int cuda_analyse(struct analyser *analyser, const struct image *src, struct analysis_result *ret)
{
    const struct analyser_layout *l = &analyser->layout;
    analyser->src = *src;
    if (join_waiting(analyser))
        lead(analyser);
    else
        while (sem_wait(&analyser->end) != 0)
            ;
    if (analyser->failed)
        return -EIO;
    const struct found *found = (const struct found *)analyser->pinned;
    motion_boxes(&analyser->analysis->motion,
                 (const struct motion_changes *)(analyser->pinned + l->host_changes),
                 &analyser->boxes, analyser->workspace);
    ret->luma = found->luma;
    ret->fingerprint = found->fingerprint;
    ret->grid = analyser->pinned + l->host_grid;
    ret->motion = &analyser->boxes;
    return 0;
}
