// One job of the CUDA backend: upload | kernel | download, band by band over the streams.
#include <errno.h>
#include <string.h>

#include "kernels/cuda.h"

static void copy_rows(uint8_t *dst, const struct plane *src, struct band rows, size_t row_bytes)
{
    if (src->stride == (ptrdiff_t)row_bytes) {
        memcpy(dst, src->data + rows.y0 * src->stride, (rows.y1 - rows.y0) * row_bytes);
        return;
    }
    for (int y = rows.y0; y < rows.y1; y++, dst += row_bytes)
        memcpy(dst, src->data + y * src->stride, row_bytes);
}

// Rows of one plane to the same rows of the lane's source, through staging where the copy engine
// cannot read them in place.
static cudaError_t upload_plane(struct lane *lane, const struct image *src, int p, struct band rows)
{
    cudaStream_t stream = lane->plan->backend->upload;
    const struct plane *plane = &src->plane[p];
    size_t row_bytes = plane_row_bytes(src->format, p, src->width);
    size_t offset = rows.y0 * row_bytes, height = rows.y1 - rows.y0;
    uint8_t *to = lane->source.plane[p].data + offset;
    const uint8_t *from = plane->data + rows.y0 * plane->stride;

    if (src->memory == MEMORY_PINNED && plane->stride > (ptrdiff_t)row_bytes)
        return cudaMemcpy2DAsync(to, row_bytes, from, plane->stride, row_bytes, height,
                                 cudaMemcpyHostToDevice, stream);
    if (src->memory != MEMORY_PINNED || plane->stride != (ptrdiff_t)row_bytes) {
        uint8_t *staging = lane->staging.plane[p].data + offset;
        copy_rows(staging, plane, rows, row_bytes);
        from = staging;
    }
    return cudaMemcpyAsync(to, from, height * row_bytes, cudaMemcpyHostToDevice, stream);
}

// Bands start on even rows, so those of subsampled planes meet without a gap.
static cudaError_t upload_band(struct lane *lane, const struct image *src, struct band band)
{
    for (int p = 0; p < pixel_format_planes(src->format); p++) {
        struct band rows = {plane_rows(src->format, p, band.y0),
                            plane_rows(src->format, p, band.y1)};
        if (rows.y0 < rows.y1)
            CUDA_TRY(upload_plane(lane, src, p, rows));
    }
    return cudaSuccess;
}

static int result_planes(const struct op *op)
{
    if (op->kind == OP_YUV)
        return pixel_format_planes(op->dst.format);
    return op->warp.layout == LAYOUT_NCHW ? op->warp.channels : 1;
}

// Results are tight: a band is one run of bytes in each plane.
static cudaError_t download(uint8_t *host, const struct image *dst, const struct op *op,
                            struct band band, cudaStream_t stream)
{
    const uint8_t *base = dst->plane[0].data;
    for (int p = 0; p < result_planes(op); p++) {
        struct band rows = band;
        if (op->kind == OP_YUV)
            rows = {plane_rows(dst->format, p, band.y0), plane_rows(dst->format, p, band.y1)};
        const uint8_t *from = dst->plane[p].data + rows.y0 * dst->plane[p].stride;
        size_t bytes = (rows.y1 - rows.y0) * dst->plane[p].stride;
        CUDA_TRY(
            cudaMemcpyAsync(host + (from - base), from, bytes, cudaMemcpyDeviceToHost, stream));
    }
    return cudaSuccess;
}

static cudaError_t run_step(struct lane *lane, const struct job *job, const struct step *step,
                            unsigned turn)
{
    struct plan *plan = lane->plan;
    const struct op *op = plan->op[step->op];
    cudaStream_t stream = plan->backend->stream[turn];
    const struct image *src = job->src.memory == MEMORY_CUDA ? &job->src : &lane->source;
    struct image dst;

    op_lay_out(op, &dst, lane->result[step->op]);
    lane->used |= 1u << turn;
    if (step->needs >= 0)
        CUDA_TRY(cudaStreamWaitEvent(stream, lane->ready[step->needs], 0));
    if (op->kind == OP_WARP)
        CUDA_TRY(warp_cuda(&dst, src, &op->warp, plan->warp[step->op], step->out, stream));
    else
        CUDA_TRY(yuv_cuda(&dst, src, &op->yuv, step->out, stream));
    if (lane->aside & 1u << step->op)
        return cudaSuccess;
    return download((uint8_t *)job->result[step->op], &dst, op, step->out, stream);
}

// An asynchronous copy to memory that is not page-locked would wait for the device.
static cudaError_t find_unpinned(struct lane *lane, const struct job *job)
{
    for (int i = 0; i < lane->plan->ops; i++) {
        struct cudaPointerAttributes attributes;
        if (!job->result[i])
            continue;
        CUDA_TRY(cudaPointerGetAttributes(&attributes, job->result[i]));
        if (attributes.type == cudaMemoryTypeUnregistered)
            lane->aside |= 1u << i;
    }
    return cudaSuccess;
}

static cudaError_t put_on_streams(struct lane *lane, struct job *job, unsigned turn)
{
    struct plan *plan = lane->plan;
    struct backend *backend = plan->backend;
    bool in_place = job->src.memory == MEMORY_CUDA; // made by work on the legacy default stream
    const struct step *step = plan->step, *end = plan->step + plan->steps;

    CUDA_TRY(find_unpinned(lane, job));
    for (int i = 0; i < plan->bands; i++) {
        if (!in_place)
            CUDA_TRY(upload_band(lane, &job->src, plan->band[i]));
        CUDA_TRY(cudaEventRecord(lane->ready[i], in_place ? cudaStreamLegacy : backend->upload));
        for (; step < end && step->needs <= i; step++)
            if (job->result[step->op])
                CUDA_TRY(run_step(lane, job, step, turn++ % backend->streams));
    }
    for (int i = 0; i < backend->streams; i++)
        if (lane->used & 1u << i)
            CUDA_TRY(cudaEventRecord(lane->finished[i], backend->stream[i]));
    return cudaSuccess;
}

cudaError_t cuda_job_start(struct lane *lane, struct job *job, unsigned turn)
{
    lane->used = lane->aside = 0;
    lane->error = put_on_streams(lane, job, turn);
    return lane->error;
}

// What a job that broke off has put on the streams is not marked by events: everything is waited
// for.
static void drain(struct backend *backend)
{
    cudaStreamSynchronize(backend->upload);
    for (int i = 0; i < backend->streams; i++)
        cudaStreamSynchronize(backend->stream[i]);
}

static cudaError_t wait_and_collect(struct lane *lane, struct job *job)
{
    struct plan *plan = lane->plan;
    CUDA_TRY(cudaEventSynchronize(lane->ready[plan->bands - 1]));
    for (int i = 0; i < plan->backend->streams; i++)
        if (lane->used & 1u << i)
            CUDA_TRY(cudaEventSynchronize(lane->finished[i]));
    for (int i = 0; i < plan->ops; i++)
        if (lane->aside & 1u << i)
            CUDA_TRY(
                cuda_copy(plan->backend, job->result[i], lane->result[i], plan->op[i]->dst_bytes));
    return cudaSuccess;
}

cudaError_t cuda_job_wait(struct lane *lane, struct job *job)
{
    if (lane->error == cudaSuccess)
        lane->error = wait_and_collect(lane, job);
    if (lane->error != cudaSuccess)
        drain(lane->plan->backend);
    return lane->error;
}
