// Raw figures of a CUDA device: its clock, and copies.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/cuda/measure.h"

enum {
    WARM_UP = 3,  // rounds before the measured ones
    IN_A_ROW = 8, // repetitions per round of measure_by_device
};

static int attribute(cudaDeviceAttr which, int device)
{
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, device) == cudaSuccess ? value : 0;
}

static cudaError_t init(struct measure *measure)
{
    struct cudaDeviceProp properties;
    int driver = 0;
    // The backend opens the same primary context with the same flags.
    CUDA_TRY(cudaInitDevice(measure->device, cudaDeviceScheduleBlockingSync,
                            cudaInitDeviceFlagsAreValid));
    CUDA_TRY(cudaSetDevice(measure->device));
    CUDA_TRY(cudaGetDeviceProperties(&properties, measure->device));
    CUDA_TRY(cudaDriverGetVersion(&driver));
    snprintf(measure->description, sizeof measure->description,
             "%s, %.1f GiB, %d copy engines, driver for CUDA %d.%d", properties.name,
             (double)properties.totalGlobalMem / (1 << 30), properties.asyncEngineCount,
             driver / 1000, driver % 1000 / 10);
    measure->peak = 2e3 * attribute(cudaDevAttrMemoryClockRate, measure->device) *
                    attribute(cudaDevAttrGlobalMemoryBusWidth, measure->device) / 8;
    CUDA_TRY(cudaStreamCreateWithFlags(&measure->up, cudaStreamNonBlocking));
    CUDA_TRY(cudaStreamCreateWithFlags(&measure->down, cudaStreamNonBlocking));
    CUDA_TRY(cudaEventCreate(&measure->start));
    return cudaEventCreate(&measure->end);
}

static void close_device(struct measure *measure)
{
    if (!measure)
        return;
    if (measure->end)
        cudaEventDestroy(measure->end);
    if (measure->start)
        cudaEventDestroy(measure->start);
    if (measure->down)
        cudaStreamDestroy(measure->down);
    if (measure->up)
        cudaStreamDestroy(measure->up);
    free(measure);
}

static int open_device(struct measure **ret, int device)
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || device >= devices)
        return -ENODEV;
    struct measure *measure = (struct measure *)calloc(1, sizeof *measure);
    if (!measure)
        return -ENOMEM;
    measure->device = device;
    cudaError_t error = init(measure);
    if (error != cudaSuccess) {
        close_device(measure);
        return cuda_errno(error);
    }
    *ret = measure;
    return 0;
}

static const char *describe(struct measure *measure)
{
    return measure->description;
}

static double memory_peak(struct measure *measure)
{
    return measure->peak;
}

static size_t memory_used(struct measure *measure)
{
    size_t available, total;
    (void)measure;
    return cudaMemGetInfo(&available, &total) == cudaSuccess ? total - available : 0;
}

static void *alloc(struct measure *measure, size_t bytes)
{
    void *memory = NULL;
    (void)measure;
    return cudaHostAlloc(&memory, bytes, cudaHostAllocPortable) == cudaSuccess ? memory : NULL;
}

static void free_memory(struct measure *measure, void *memory)
{
    (void)measure;
    cudaFreeHost(memory);
}

// --- time

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Polls until all work is done: sleeping and waking would take longer and make the limit lax.
static cudaError_t spin(struct measure *measure)
{
    cudaStream_t streams[] = {measure->up, measure->down, cudaStreamLegacy};
    for (cudaStream_t stream : streams) {
        cudaError_t error;
        while ((error = cudaStreamQuery(stream)) == cudaErrorNotReady)
            ;
        CUDA_TRY(error);
    }
    cudaGetLastError(); // clear a "not ready" that may have stayed
    return cudaSuccess;
}

cudaError_t measure_by_host(struct measure *measure, work_fn *run, void *work, int rounds,
                            double seconds[])
{
    for (int i = -WARM_UP; i < rounds; i++) {
        CUDA_TRY(cudaDeviceSynchronize());
        const double start = now();
        CUDA_TRY(run(measure, work));
        CUDA_TRY(spin(measure));
        if (i >= 0)
            seconds[i] = now() - start;
    }
    return cudaSuccess;
}

cudaError_t measure_by_device(struct measure *measure, work_fn *run, void *work, int rounds,
                              double seconds[])
{
    for (int i = -WARM_UP; i < rounds; i++) {
        float ms;
        CUDA_TRY(cudaEventRecord(measure->start, measure->up));
        for (int turn = 0; turn < IN_A_ROW; turn++)
            CUDA_TRY(run(measure, work));
        CUDA_TRY(cudaEventRecord(measure->end, measure->up));
        CUDA_TRY(cudaEventSynchronize(measure->end));
        CUDA_TRY(cudaEventElapsedTime(&ms, measure->start, measure->end));
        if (i >= 0)
            seconds[i] = ms * 1e-3 / IN_A_ROW;
    }
    return cudaSuccess;
}

// --- copies

struct copying {
    const struct measure_copies *copies;
    uint8_t *from, *to; // device
};

static cudaError_t copy_round(struct measure *measure, void *work)
{
    const struct copying *copying = (const struct copying *)work;
    const struct measure_copies *c = copying->copies;
    cudaStream_t down = c->in_turn ? measure->up : measure->down;
    for (int i = 0; i < c->up; i++)
        CUDA_TRY(cudaMemcpyAsync(copying->to + i * c->up_bytes, c->from + i * c->up_bytes,
                                 c->up_bytes, cudaMemcpyHostToDevice, measure->up));
    for (int i = 0; i < c->down; i++)
        CUDA_TRY(cudaMemcpyAsync(c->to + i * c->down_bytes, copying->from + i * c->down_bytes,
                                 c->down_bytes, cudaMemcpyDeviceToHost, down));
    return cudaSuccess;
}

static int copies(struct measure *measure, const struct measure_copies *wanted, int rounds,
                  double seconds[])
{
    struct copying copying = {wanted, NULL, NULL};
    const size_t up = wanted->up * wanted->up_bytes, down = wanted->down * wanted->down_bytes;
    cudaError_t error = cudaMalloc((void **)&copying.to, up + 1);
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&copying.from, down + 1);
    if (error == cudaSuccess)
        error = cudaMemset(copying.from, 0x5A, down + 1);
    if (error == cudaSuccess)
        error = measure_by_host(measure, copy_round, &copying, rounds, seconds);
    cudaFree(copying.from);
    cudaFree(copying.to);
    return cuda_errno(error);
}

struct moving {
    uint8_t *from, *to;
    size_t bytes;
};

static cudaError_t move_round(struct measure *measure, void *work)
{
    const struct moving *moving = (const struct moving *)work;
    return cudaMemcpyAsync(moving->to, moving->from, moving->bytes, cudaMemcpyDeviceToDevice,
                           measure->up);
}

static int device_copy(struct measure *measure, size_t bytes, int rounds, double seconds[])
{
    struct moving moving = {NULL, NULL, bytes};
    cudaError_t error = cudaMalloc((void **)&moving.from, bytes);
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&moving.to, bytes);
    if (error == cudaSuccess)
        error = cudaMemset(moving.from, 0x5A, bytes);
    if (error == cudaSuccess)
        error = measure_by_device(measure, move_round, &moving, rounds, seconds);
    cudaFree(moving.to);
    cudaFree(moving.from);
    return cuda_errno(error);
}

extern const struct measure_driver cuda_measure = {
    open_device,      close_device,
    describe,         memory_peak,
    memory_used,      alloc,
    free_memory,      copies,
    device_copy,      measure_warp,
    measure_elements, measure_ready,
    measure_yuv,      measure_yuv_plain,
};
