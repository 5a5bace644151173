// Pictures of many cameras that are ready at once: the cost of a job for each, and of one launch
// for all.
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include "tests/bench/cuda/measure.h"

enum { WARM_UP = 5 }; // rounds before the measured ones

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Clock readings at the start of a round.
struct start {
    double wall, thread, process;
};

static struct start start_now(void)
{
    return {seconds_of(CLOCK_MONOTONIC), seconds_of(CLOCK_THREAD_CPUTIME_ID),
            seconds_of(CLOCK_PROCESS_CPUTIME_ID)};
}

// --- one launch

// Acts as a collector would: waits for the decoders' work, launches, and sleeps until that is done.
static cudaError_t launch_round(struct measure *measure, const struct warping *warping,
                                cudaEvent_t done, struct measure_cost *cost)
{
    const struct start start = start_now();
    float ms = 0;
    CUDA_TRY(cudaEventRecord(done, cudaStreamLegacy));
    CUDA_TRY(cudaStreamWaitEvent(measure->up, done, 0));
    CUDA_TRY(cudaEventRecord(measure->start, measure->up));
    CUDA_TRY(warping_launch(warping, measure->up));
    CUDA_TRY(cudaEventRecord(measure->end, measure->up));
    CUDA_TRY(cudaEventRecord(done, measure->up));
    cost->submit = seconds_of(CLOCK_THREAD_CPUTIME_ID) - start.thread;
    CUDA_TRY(cudaEventSynchronize(done));
    cost->wall = seconds_of(CLOCK_MONOTONIC) - start.wall;
    cost->cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start.process;
    CUDA_TRY(cudaEventElapsedTime(&ms, measure->start, measure->end));
    cost->kernel = ms * 1e-3;
    return cudaSuccess;
}

static cudaError_t launch_rounds(struct measure *measure, const struct warping *warping, int rounds,
                                 struct measure_cost costs[])
{
    struct measure_cost warm_up;
    cudaEvent_t done;
    CUDA_TRY(cudaEventCreateWithFlags(&done, cudaEventBlockingSync | cudaEventDisableTiming));
    cudaError_t error = cudaSuccess;
    for (int i = -WARM_UP; i < rounds && error == cudaSuccess; i++)
        error = launch_round(measure, warping, done, i < 0 ? &warm_up : &costs[i]);
    cudaEventDestroy(done);
    return error;
}

// --- a job each

// A camera with its own plan.
struct ready_camera {
    struct plan *plan;
    struct job job;
    struct job_result result;
};

struct ready {
    struct backend *backend;
    struct ready_camera camera[CUDA_ITEMS_MAX];
    int n;
    sem_t done;
};

static void job_done(struct job *job, int status)
{
    (void)status; // unused: after a device failure the next submit reports it
    sem_post((sem_t *)job->opaque);
}

static int ready_open(struct ready *ready, const struct warping *warping)
{
    struct backend_options options = {};
    int rc = cuda_backend.open(&ready->backend, &options);
    for (; rc == 0 && ready->n < warping->n; ready->n += rc == 0) {
        const struct cuda_item *item = &warping->items[ready->n];
        struct ready_camera *camera = &ready->camera[ready->n];
        camera->job.src = item->src;
        camera->job.results = &camera->result;
        camera->job.n = 1;
        camera->job.done = job_done;
        camera->job.opaque = &ready->done;
        camera->result.data = item->dst;
        camera->result.memory = MEMORY_CUDA;
        rc = cuda_backend.plan_open(ready->backend, &camera->plan, &item->src, &item->op, 1, 1);
    }
    return rc;
}

static void ready_close(struct ready *ready)
{
    for (int i = 0; i < ready->n; i++)
        cuda_backend.plan_close(ready->camera[i].plan);
    cuda_backend.close(ready->backend);
}

static int job_round(struct ready *ready, struct measure_cost *cost)
{
    const struct device_busy busy = cuda_backend.busy(ready->backend);
    const struct start start = start_now();
    int rc = 0, submitted = 0;
    for (; submitted < ready->n && rc == 0; submitted += rc == 0)
        rc = cuda_backend.submit(ready->camera[submitted].plan, &ready->camera[submitted].job);
    cost->submit = seconds_of(CLOCK_THREAD_CPUTIME_ID) - start.thread;
    for (int i = 0; i < submitted; i++)
        while (sem_wait(&ready->done) != 0)
            ;
    cost->wall = seconds_of(CLOCK_MONOTONIC) - start.wall;
    cost->cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start.process;
    cost->kernel = (cuda_backend.busy(ready->backend).kernel - busy.kernel) * 1e-9;
    return rc;
}

static int job_rounds(const struct warping *warping, int rounds, struct measure_cost costs[])
{
    struct measure_cost warm_up;
    struct ready *ready = (struct ready *)calloc(1, sizeof *ready);
    if (!ready)
        return -ENOMEM;
    sem_init(&ready->done, 0, 0);
    int rc = ready_open(ready, warping);
    for (int i = -WARM_UP; i < rounds && rc == 0; i++)
        rc = job_round(ready, i < 0 ? &warm_up : &costs[i]);
    ready_close(ready);
    sem_destroy(&ready->done);
    free(ready);
    return rc;
}

int measure_ready(struct measure *measure, const struct image src[], int n, const struct op *op,
                  bool together, int rounds, struct measure_cost costs[])
{
    struct warping warping;
    const struct op *const ops[] = {op};
    int rc = cuda_errno(
        warping_init(measure, &warping, src, n < CUDA_ITEMS_MAX ? n : CUDA_ITEMS_MAX, ops, 1));
    if (rc == 0 && together)
        rc = cuda_errno(launch_rounds(measure, &warping, rounds, costs));
    else if (rc == 0)
        rc = job_rounds(&warping, rounds, costs);
    warping_finish(&warping);
    return rc;
}
