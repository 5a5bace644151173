// One job of the CUDA backend: upload, kernel and download, slice by slice, on the streams that the
// schedule names. A slice is a source band and the results that it completes. The device copies
// both ways and computes at the same time, each on its own stream:
//
//     time    ------------------------------------------------------------->
//     up      | rows 0 |  rows 1  |  rows 2  | rows 3 |
//     kernel           | 0 |      | 1 |      | 2 |    | 3 |
//     down                 | 0 |      | 1 |      | 2 |    | 3 |
//
// A kernel waits for the event `ready` of its rows, a download for the event `computed` of its
// kernel, so a frame takes little longer than its slower direction. Bands grow and then shrink
// (schedule.h): the first kernel starts early and little work remains after the last row. A small
// frame is one slice, with all its work on one stream; it overlaps with the frames before and after
// it, which are on other streams. The same holds for a frame on the device if no result leaves it.
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "kernels/cuda/cuda.h"

// Returns the stream of a slice's number and marks it as used by the job.
static cudaStream_t use(struct job_slot *slot, int number)
{
    int stream = schedule_stream(&slot->plan->schedule, number, slot->first_stream);
    slot->used |= 1u << stream;
    return slot->plan->backend->stream[stream];
}

static bool on_device(const struct job *job)
{
    return job->src.memory == MEMORY_CUDA;
}

// --- upload

// Returns the rows of a plane that belong to a band of luma rows. Bands start on even rows, so
// bands of subsampled planes meet without a gap.
static struct band plane_band(enum pixel_format format, int plane, struct band band)
{
    return {plane_rows(format, plane, band.y0), plane_rows(format, plane, band.y1)};
}

static size_t distance(ptrdiff_t stride)
{
    return stride < 0 ? -stride : stride;
}

// Keeps the frame's strides in the device's copy if its rows fit, also for upside-down frames: each
// plane is then one run of bytes, which copies fastest.
static void mirror(struct job_slot *slot, const struct image *src)
{
    slot->image = *src;
    slot->image.memory = MEMORY_CUDA;
    for (int p = 0; p < pixel_format_planes(src->format); p++) {
        struct plane *to = &slot->image.plane[p];
        ptrdiff_t row_bytes = plane_row_bytes(src->format, p, src->width);
        bool fits = distance(to->stride) <= cuda_source_pitch(src, p);
        if (src->memory != MEMORY_PINNED)
            to->stride = row_bytes;
        else if (!fits)
            to->stride = to->stride < 0 ? -row_bytes : row_bytes;
        to->data = slot->source + cuda_source_offset(src, p);
        if (to->stride < 0)
            to->data -= (plane_rows(src->format, p, src->height) - 1) * to->stride;
    }
}

static void copy_rows(uint8_t *dst, const struct plane *src, struct band rows, size_t row_bytes)
{
    if (src->stride == (ptrdiff_t)row_bytes) {
        memcpy(dst, src->data + rows.y0 * src->stride, (rows.y1 - rows.y0) * row_bytes);
        return;
    }
    for (int y = rows.y0; y < rows.y1; y++, dst += row_bytes)
        memcpy(dst, src->data + y * src->stride, row_bytes);
}

// Copies the band to pinned memory with the CPU: from other memory, the copy engines would wait for
// the device. *image becomes the frame in pinned memory.
static void stage(struct job_slot *slot, struct image *image, const struct image *src,
                  struct band band)
{
    image_lay_out(image, slot->staging);
    for (int p = 0; p < pixel_format_planes(src->format); p++) {
        size_t row_bytes = plane_row_bytes(src->format, p, src->width);
        struct band rows = plane_band(src->format, p, band);
        copy_rows(image->plane[p].data + rows.y0 * row_bytes, &src->plane[p], rows, row_bytes);
    }
}

static cudaError_t upload_rows(const struct plane *to, const struct plane *from, struct band rows,
                               size_t row_bytes, cudaStream_t stream)
{
    int lowest = from->stride < 0 ? rows.y1 - 1 : rows.y0, n = rows.y1 - rows.y0;
    size_t from_pitch = distance(from->stride), to_pitch = distance(to->stride);
    uint8_t *dst = to->data + lowest * to->stride;
    const uint8_t *src = from->data + lowest * from->stride;
    if (from_pitch == to_pitch)
        return cudaMemcpyAsync(dst, src, (n - 1) * from_pitch + row_bytes, cudaMemcpyHostToDevice,
                               stream);
    return cudaMemcpy2DAsync(dst, to_pitch, src, from_pitch, row_bytes, n, cudaMemcpyHostToDevice,
                             stream);
}

static cudaError_t upload(struct job_slot *slot, const struct image *from, struct band band,
                          cudaStream_t stream)
{
    for (int p = 0; p < pixel_format_planes(from->format); p++) {
        struct band rows = plane_band(from->format, p, band);
        if (rows.y0 < rows.y1)
            CUDA_TRY(upload_rows(&slot->image.plane[p], &from->plane[p], rows,
                                 plane_row_bytes(from->format, p, from->width), stream));
    }
    return cudaSuccess;
}

// --- ops that come with the job

bool cuda_job_fits(const struct plan *plan, const struct job *job)
{
    bool fits = job_suits(job, plan->op, plan->ops);
    for (int i = 0; fits && i < plan->ops; i++) {
        const struct op *op = job->results[i].op;
        const struct cuda_op *kernels = cuda_ops[plan->op[i]->kind];
        if (op && kernels->block_bytes)
            fits = kernels->block_bytes(op) <= kernels->block_room(plan->op[i]);
    }
    return fits;
}

// Packs the blocks of these ops in memory that the copy engines can read.
static void pack_blocks(struct job_slot *slot, const struct job *job)
{
    const struct plan *plan = slot->plan;
    slot->brought_end = 0;
    for (int i = 0; i < plan->ops; i++) {
        const struct op *op = job->results[i].op;
        const struct cuda_op *kernels = cuda_ops[plan->op[i]->kind];
        const size_t at = plan->own_block[i];
        if (!op || !job->results[i].data || !kernels->block_pack)
            continue;
        kernels->block_pack(op, slot->blocks + at, slot->device_blocks + at, plan->lut[i]);
        if (slot->brought_end == 0)
            slot->brought = at;
        slot->brought_end = at + kernels->block_bytes(op);
    }
}

// Uses the stream of the kernels that read the blocks, in the last slice.
static cudaError_t upload_blocks(const struct job_slot *slot, cudaStream_t stream)
{
    if (slot->brought_end == 0)
        return cudaSuccess;
    return cudaMemcpyAsync(slot->device_blocks + slot->brought, slot->blocks + slot->brought,
                           slot->brought_end - slot->brought, cudaMemcpyHostToDevice, stream);
}

// --- kernels

static uint8_t *result_on_device(const struct job_slot *slot, const struct job *job, int op)
{
    const struct job_result *result = &job->results[op];
    return result->memory == MEMORY_CUDA ? (uint8_t *)result->data : slot->result[op];
}

// Makes one launch for all steps that can share it.
static cudaError_t launch(struct job_slot *slot, const struct job *job, const struct slice *slice,
                          cudaStream_t stream)
{
    const struct plan *plan = slot->plan;
    const struct step *step = plan->schedule.step;
    for (int i = slice->first; i < slice->end;) {
        const struct op *first = plan->op[step[i].op];
        struct cuda_item items[CUDA_ITEMS_MAX];
        int n = 0;
        do {
            const int op = step[i].op;
            const struct op *own = job->results[op].op;
            if (job->results[op].data)
                items[n++] = {slot->image, result_on_device(slot, job, op),
                              own ? slot->device_blocks + plan->own_block[op] : plan->block[op],
                              own ? own : plan->op[op], step[i].out};
            i++;
        } while (i < slice->end && n < CUDA_ITEMS_MAX &&
                 ops_share_launch(first, plan->op[step[i].op]));
        if (n > 0)
            CUDA_TRY(cuda_ops[first->kind]->launch(items, n, stream));
    }
    return cudaSuccess;
}

// --- download

static bool is_downloaded(const struct job *job, const struct step *step)
{
    const struct job_result *result = &job->results[step->op];
    return result->data && result->memory == MEMORY_PINNED;
}

// Copies a whole result at once, and a band of identically laid out planes in one 2D copy with a
// row per plane.
static cudaError_t download(struct job_slot *slot, const struct job *job, const struct step *step,
                            cudaStream_t stream)
{
    const struct op *op = slot->plan->op[step->op];
    uint8_t *to = (uint8_t *)job->results[step->op].data;
    const uint8_t *from = slot->result[step->op];
    const int copies = schedule_copies(op, step->out), planes = image_planes(&op->dst);
    if (step->out.y1 - step->out.y0 == op->dst.height)
        return cudaMemcpyAsync(to, from, op->dst_bytes, cudaMemcpyDeviceToHost, stream);
    for (int p = 0; p < copies; p++) {
        const struct plane *plane = &op->dst.plane[p]; // laid out from NULL
        const struct band rows = plane_band(op->dst.format, p, step->out);
        const size_t offset = (uintptr_t)plane->data + rows.y0 * plane->stride;
        const size_t bytes = (rows.y1 - rows.y0) * plane->stride;
        const size_t plane_bytes = plane->stride * op->dst.height;
        if (copies == planes)
            CUDA_TRY(
                cudaMemcpyAsync(to + offset, from + offset, bytes, cudaMemcpyDeviceToHost, stream));
        else
            CUDA_TRY(cudaMemcpy2DAsync(to + offset, plane_bytes, from + offset, plane_bytes, bytes,
                                       planes, cudaMemcpyDeviceToHost, stream));
    }
    return cudaSuccess;
}

// --- slices

static bool has_step(const struct job_slot *slot, const struct job *job, const struct slice *slice,
                     bool downloaded)
{
    const struct step *step = slot->plan->schedule.step;
    for (int i = slice->first; i < slice->end; i++)
        if (downloaded ? is_downloaded(job, &step[i]) : !!job->results[step[i].op].data)
            return true;
    return false;
}

// Waits for source bands. Those on the same stream need no event, and on another stream the last
// event is enough.
static cudaError_t wait_for_bands(struct job_slot *slot, int index)
{
    const struct schedule *schedule = &slot->plan->schedule;
    const struct slice *slice = &schedule->slice[index];
    cudaStream_t stream = use(slot, slice->kernel);
    uint32_t waited = 1u << slice->kernel;
    for (int i = index; i >= slice->from; i--) {
        int up = schedule->slice[i].up;
        if (!(waited & 1u << up))
            CUDA_TRY(cudaStreamWaitEvent(stream, slot->ready[i], 0));
        waited |= 1u << up;
    }
    return cudaSuccess;
}

// Waits once per stream for a frame on the device, which was made by work on the legacy default
// stream.
static cudaError_t wait_for_frame(struct job_slot *slot, int kernel)
{
    bool first =
        !(slot->used & 1u << schedule_stream(&slot->plan->schedule, kernel, slot->first_stream));
    cudaStream_t stream = use(slot, kernel);
    return first ? cudaStreamWaitEvent(stream, slot->ready[0], 0) : cudaSuccess;
}

static cudaError_t put_upload(struct job_slot *slot, int index, const struct image *from)
{
    const struct schedule *schedule = &slot->plan->schedule;
    const struct slice *slice = &schedule->slice[index];
    cudaStream_t stream = use(slot, slice->up);
    CUDA_TRY(upload(slot, from, slice->rows, stream));
    if (schedule->slices == 1 || schedule->streams == 1)
        return cudaSuccess;
    return cudaEventRecord(slot->ready[index], stream);
}

static cudaError_t put_results(struct job_slot *slot, const struct slice *slice,
                               const struct job *job)
{
    const struct schedule *schedule = &slot->plan->schedule;
    const bool last = slice == &schedule->whole || slice == &schedule->slice[schedule->slices - 1];
    const int index = slice == &schedule->whole ? 0 : (int)(slice - schedule->slice);
    if (!has_step(slot, job, slice, false))
        return cudaSuccess;
    CUDA_TRY(on_device(job) ? wait_for_frame(slot, slice->kernel) : wait_for_bands(slot, index));
    cudaStream_t kernel = use(slot, slice->kernel);
    if (last)
        CUDA_TRY(upload_blocks(slot, kernel));
    cuda_stopwatch_start(slot, index, kernel);
    CUDA_TRY(launch(slot, job, slice, kernel));
    cuda_stopwatch_stop(slot, index, kernel);
    if (!has_step(slot, job, slice, true))
        return cudaSuccess;
    cudaStream_t stream = use(slot, slice->download);
    if (stream != kernel) {
        CUDA_TRY(cudaEventRecord(slot->computed[index], kernel));
        CUDA_TRY(cudaStreamWaitEvent(stream, slot->computed[index], 0));
    }
    for (int i = slice->first; i < slice->end; i++)
        if (is_downloaded(job, &schedule->step[i]))
            CUDA_TRY(download(slot, job, &schedule->step[i], stream));
    return cudaSuccess;
}

// Marks the end of the job's work on every stream that it used.
static cudaError_t put_ends(struct job_slot *slot)
{
    for (int i = 0; i < slot->plan->backend->streams; i++)
        if (slot->used & 1u << i)
            CUDA_TRY(cudaEventRecord(slot->finished[slot->ends++], slot->plan->backend->stream[i]));
    return cudaSuccess;
}

static cudaError_t put_slice(struct job_slot *slot, int index, const struct job *job,
                             const struct image *from)
{
    if (!on_device(job))
        CUDA_TRY(put_upload(slot, index, from));
    return put_results(slot, &slot->plan->schedule.slice[index], job);
}

// --- job

static cudaError_t put_whole(struct job_slot *slot, const struct job *job, const struct image *from)
{
    struct backend *backend = slot->plan->backend;
    pthread_mutex_lock(&backend->submitting);
    cudaError_t error = cudaSuccess;
    if (on_device(job))
        error = cudaEventRecord(slot->ready[0], cudaStreamLegacy);
    if (error == cudaSuccess)
        error = put_slice(slot, 0, job, from);
    if (error == cudaSuccess)
        error = put_ends(slot);
    pthread_mutex_unlock(&backend->submitting);
    return error;
}

static cudaError_t put_bands(struct job_slot *slot, const struct job *job, struct image *from)
{
    const struct schedule *schedule = &slot->plan->schedule;
    if (on_device(job))
        CUDA_TRY(cudaEventRecord(slot->ready[0], cudaStreamLegacy));
    if (on_device(job) && !has_step(slot, job, &schedule->whole, true)) {
        CUDA_TRY(put_results(slot, &schedule->whole, job));
        return put_ends(slot);
    }
    for (int i = 0; i < schedule->slices; i++) {
        if (job->src.memory == MEMORY_HOST)
            stage(slot, from, &job->src, schedule->slice[i].rows);
        CUDA_TRY(put_slice(slot, i, job, from));
    }
    return put_ends(slot);
}

cudaError_t cuda_job_start(struct job_slot *slot, struct job *job, unsigned first_stream)
{
    const struct schedule *schedule = &slot->plan->schedule;
    struct image from = job->src; // for the copy engines
    slot->used = slot->ends = 0;
    pack_blocks(slot, job);
    slot->first_stream = first_stream;
    if (on_device(job))
        slot->image = job->src;
    else
        mirror(slot, &job->src);
    if (schedule->slices > 1) {
        slot->error = put_bands(slot, job, &from);
    } else {
        if (job->src.memory == MEMORY_HOST)
            stage(slot, &from, &job->src, schedule->slice[0].rows);
        slot->error = put_whole(slot, job, &from);
    }
    return slot->error;
}

// Waits for all streams, as no events mark the work of a job that broke off. A failed device
// returns at once.
static void drain(struct backend *backend)
{
    for (int i = 0; i < backend->streams; i++)
        cudaStreamSynchronize(backend->stream[i]);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Polls an event, and sleeps for it after `until`: other work may hold the device.
static cudaError_t poll_event(cudaEvent_t event, double until)
{
    cudaError_t error;
    while ((error = cudaEventQuery(event)) == cudaErrorNotReady && seconds_now() < until)
        sched_yield();
    if (error != cudaErrorNotReady)
        return error;
    cudaGetLastError(); // otherwise NotReady stays the thread's last error
    return cudaEventSynchronize(event);
}

// Waking from a blocking wait takes longer than the last bands of a large frame. With `poll` the
// thread sleeps until their upload is near, and then polls.
static cudaError_t wait_for_end(struct job_slot *slot, bool poll)
{
    double until = 0;
    if (poll) {
        CUDA_TRY(cudaEventSynchronize(slot->ready[slot->plan->wake]));
        until = seconds_now() + 2 * WAKE_SECONDS;
    }
    for (int i = 0; i < slot->ends; i++)
        CUDA_TRY(poll ? poll_event(slot->finished[i], until)
                      : cudaEventSynchronize(slot->finished[i]));
    return cudaSuccess;
}

// Fetches results for memory that is not page-locked: copies to it on the streams would make submit
// wait for the device.
static cudaError_t wait_and_collect(struct job_slot *slot, struct job *job)
{
    struct plan *plan = slot->plan;
    bool marked = plan->schedule.slices > 1 && plan->schedule.streams > 1 && !on_device(job);
    CUDA_TRY(wait_for_end(slot, marked));
    for (int i = 0; i < plan->ops; i++) {
        const struct job_result *result = &job->results[i];
        if (result->data && result->memory == MEMORY_HOST)
            CUDA_TRY(
                cuda_copy(plan->backend, result->data, slot->result[i], plan->op[i]->dst_bytes));
    }
    return cudaSuccess;
}

cudaError_t cuda_job_wait(struct job_slot *slot, struct job *job)
{
    if (slot->error == cudaSuccess)
        slot->error = wait_and_collect(slot, job);
    if (slot->error != cudaSuccess)
        drain(slot->plan->backend);
    return slot->error;
}
