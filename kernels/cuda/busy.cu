// How long the device is busy with each leg of the jobs: the time that the leg's work takes alone,
// one piece after the other. With several jobs in flight their legs overlap and wait for each
// other, which a clock around any of them would count more than once.
//
// A copy engine works off one copy after the other, so a copy takes its bytes at the rate that was
// measured when the backend opened. That is too little where the link has become slower since, by
// both directions at work, rows of odd strides, or others' copies.
//
// Kernels are timed: those of one job now and then, between events on their own stream, behind all
// that they wait for. What runs beside them only makes that longer, so the least of late is kept,
// for a byte of results: cameras leave out some now and then. That is too much by a few
// microseconds where the stream was idle and waited for the launch, and, where kernels are too
// small to fill the device, by what runs side by side.
#include <time.h>

#include "kernels/cuda/cuda.h"

static const int64_t EVERY_NS = 100000000; // between two jobs that are timed, on the whole
static const double FORGET = 1 / 16.0;     // of what a longer time is above the kept one

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

// Between half of EVERY_NS and one and a half, spread by the golden ratio: after times that are all
// alike, of cameras with one rate the same one would be the first to come, for ever.
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

// False: a call failed, and the job goes without.
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
    const double rate = plan->backend->schedule.link.up / 1e9; // bytes a ns
    const double upload = slot->brought_end > 0 ? (slot->brought_end - slot->brought) / rate : 0;
    return {(uint64_t)(upload + (job->src.memory == MEMORY_CUDA ? 0 : plan->upload_ns)),
            (uint64_t)(plan->kernel_rate * bytes), (uint64_t)download};
}
