// Measures a device and its link when the backend opens: copies of pinned memory in each direction
// alone, in both together, and small ones.
#include <string.h>

#include "kernels/cuda/cuda.h"

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

void cuda_link_measure(struct link *link, int device)
{
    struct bench bench = {};
    *link = link_default;
    cuda_errno(measure(link, &bench, device));
    bench_finish(&bench);
}
