// Measures how long the device is busy with the uploads, kernels and downloads of jobs: the time
// that each takes alone, one after the other. With several jobs in flight they overlap and wait for
// each other, so a clock around any of them would count some time more than once.
//
// A copy engine makes one copy at a time, so a copy counts its bytes at the rate measured when the
// backend opened. This is too low if the link has become slower since, because of traffic in both
// directions, rows of odd strides, or copies of others.
//
// Kernels are timed for one job now and then, between events on their own stream, after everything
// that they wait for. Parallel work only lengthens this time, so the recent minimum is kept, per
// byte of results, as cameras omit some results now and then. It is too high by a few microseconds
// if the stream was idle and waited for the launch, and by parallel work if the kernels are too
// small to fill the device.
#include <time.h>

#include "kernels/cuda/cuda.h"

static const int64_t EVERY_NS = 100000000; // average between two timed jobs
static const double FORGET = 1 / 16.0;     // share of the excess added for a longer time

// --- the stopwatch

cudaError_t cuda_stopwatch_init(struct stopwatch *watch)
{
    for (int i = 0; i < BANDS_MAX; i++) {
        CUDA_TRY(cudaEventCreate(&watch->begin[i]));
        CUDA_TRY(cudaEventCreate(&watch->end[i]));
    }
    return cudaSuccess;
}

void cuda_stopwatch_finish(struct stopwatch *watch)
{
    for (int i = 0; i < BANDS_MAX; i++) {
        if (watch->begin[i])
            cudaEventDestroy(watch->begin[i]);
        if (watch->end[i])
            cudaEventDestroy(watch->end[i]);
    }
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// Returns a pause of 0.5 to 1.5 times EVERY_NS, spread by the golden ratio: with equal pauses, the
// same one of several cameras with one rate would always be timed.
static int64_t pause_ns(struct stopwatch *watch)
{
    watch->spread += 0x9e3779b9;
    return EVERY_NS / 2 + (EVERY_NS * watch->spread >> 32);
}

struct stopwatch *cuda_stopwatch_take(struct plan *plan)
{
    struct stopwatch *watch = &plan->backend->watch;
    const int64_t now = now_ns();
    if (watch->taken || (plan->timed && now < watch->due_ns))
        return NULL;
    watch->taken = plan->timed = true;
    watch->due_ns = now + pause_ns(watch);
    watch->slices = 0;
    watch->broken = false;
    return watch;
}

static void record(struct stopwatch *watch, cudaEvent_t event, cudaStream_t stream)
{
    if (!watch->broken && cuda_errno(cudaEventRecord(event, stream)))
        watch->broken = true;
}

void cuda_stopwatch_start(const struct job_slot *slot, int slice, cudaStream_t stream)
{
    if (slot->watch)
        record(slot->watch, slot->watch->begin[slice], stream);
}

void cuda_stopwatch_stop(const struct job_slot *slot, int slice, cudaStream_t stream)
{
    if (!slot->watch)
        return;
    record(slot->watch, slot->watch->end[slice], stream);
    slot->watch->slices |= UINT64_C(1) << slice;
}

// Returns false if a call failed; the job then counts no measurement.
static bool read(const struct stopwatch *watch, double *ret)
{
    bool sound = !watch->broken;
    *ret = 0;
    for (int i = 0; i < BANDS_MAX && sound; i++) {
        float ms = 0;
        if (watch->slices & UINT64_C(1) << i)
            sound = !cuda_errno(cudaEventElapsedTime(&ms, watch->begin[i], watch->end[i]));
        *ret += ms * 1e6;
    }
    return sound;
}

// --- copies

static double upload_ns(const struct plan *plan)
{
    const struct link *link = &plan->backend->schedule.link;
    const enum pixel_format format = plan->src.format;
    double seconds = 0;
    for (int i = 0; i < plan->schedule.slices; i++) {
        const struct band band = plan->schedule.slice[i].rows;
        for (int p = 0; p < pixel_format_planes(format); p++) {
            const int rows = plane_rows(format, p, band.y1) - plane_rows(format, p, band.y0);
            if (rows > 0)
                seconds +=
                    rows * plane_row_bytes(format, p, plan->src.width) / link->up + link->copy;
        }
    }
    return seconds * 1e9;
}

void cuda_copies_init(struct plan *plan)
{
    const struct link *link = &plan->backend->schedule.link;
    plan->upload_ns = upload_ns(plan);
    for (int i = 0; i < plan->ops; i++)
        plan->download_ns[i] = plan->op[i]->dst_bytes / link->down * 1e9;
    for (int i = 0; i < plan->schedule.steps; i++) {
        const struct step *step = &plan->schedule.step[i];
        plan->download_ns[step->op] +=
            schedule_copies(plan->op[step->op], step->out) * link->copy * 1e9;
    }
}

// --- job

static void keep_least(double *kept, double rate)
{
    if (*kept == 0 || rate < *kept)
        *kept = rate;
    else
        *kept += (rate - *kept) * FORGET;
}

struct device_busy cuda_job_busy(struct job_slot *slot, const struct job *job)
{
    struct plan *plan = slot->plan;
    double kernel, download = 0, bytes = 0;
    for (int i = 0; i < plan->ops; i++) {
        const struct job_result *result = &job->results[i];
        bytes += result->data ? plan->op[i]->dst_bytes : 0;
        if (result->data && result->memory != MEMORY_CUDA)
            download += plan->download_ns[i];
    }
    if (slot->watch && bytes > 0 && read(slot->watch, &kernel))
        keep_least(&plan->kernel_rate, kernel / bytes);
    const double rate = plan->backend->schedule.link.up / 1e9; // bytes per ns
    const double upload = slot->brought_end > 0 ? (slot->brought_end - slot->brought) / rate : 0;
    return {(uint64_t)(upload + (job->src.memory == MEMORY_CUDA ? 0 : plan->upload_ns)),
            (uint64_t)(plan->kernel_rate * bytes), (uint64_t)download};
}
