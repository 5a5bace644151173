// A plan of the CUDA backend: its ops on the device, the buffers of its lanes, and the schedule:
// which band of which result runs after which source band.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda.h"

// Splitting a frame costs a launch and two copies a band, which small frames do not earn back.
enum { UNSPLIT_BYTES = 4 << 20, BAND_BYTES = 2 << 20 };

// --- ops

static int32_t *append(uint8_t *host, uint8_t *device, size_t *used, const int32_t *table, int n)
{
    size_t at = *used;
    memcpy(host + at, table, n * sizeof *table);
    *used += n * sizeof *table;
    return (int32_t *)(device + at);
}

// One block of device memory: the struct, then its four tables.
static int warp_to_device(struct backend *backend, struct warp **ret, const struct warp *warp)
{
    size_t used = sizeof *warp;
    size_t bytes = used + 2 * (warp->width + warp->height) * sizeof *warp->colx;
    uint8_t *host = (uint8_t *)malloc(bytes), *device = NULL;
    cudaError_t error = host ? cudaMalloc((void **)&device, bytes) : cudaErrorMemoryAllocation;

    if (error == cudaSuccess) {
        struct warp *copy = (struct warp *)host;
        *copy = *warp;
        copy->colx = append(host, device, &used, warp->colx, warp->width);
        copy->rowx = append(host, device, &used, warp->rowx, warp->height);
        copy->coly = append(host, device, &used, warp->coly, warp->width);
        copy->rowy = append(host, device, &used, warp->rowy, warp->height);
        error = cuda_copy(backend, device, host, bytes);
    }
    *ret = (struct warp *)device; // the plan's, also after an error
    free(host);
    return cuda_errno(error);
}

// Kernels are loaded here because a first launch that loads its kernel may wait for the device.
static int ops_init(struct plan *plan)
{
    int error = 0;
    for (int i = 0; i < plan->ops && !error; i++) {
        const struct op *op = plan->op[i];
        bool is_warp = op->kind == OP_WARP;
        struct cudaFuncAttributes attributes;
        error = cuda_errno(cudaFuncGetAttributes(&attributes, is_warp ? warp_cuda_kernel(&op->warp)
                                                                      : yuv_cuda_kernel(&op->yuv)));
        if (!error && is_warp)
            error = warp_to_device(plan->backend, &plan->warp[i], &op->warp);
    }
    return error;
}

// --- schedule

// Rows a band when `height` rows are to make `bands` of them: even, for 4:2:0.
static int rows_a_band(int height, int bands)
{
    int rows = (height + bands - 1) / bands;
    return rows + (rows & 1);
}

static int bands_wanted(const struct plan *plan)
{
    struct image image = plan->src;
    size_t bytes = image_lay_out(&image, NULL), band_bytes = plan->backend->band_bytes;
    for (int i = 0; i < plan->ops; i++)
        bytes += plan->op[i]->dst_bytes;
    if (!band_bytes) {
        if (bytes < UNSPLIT_BYTES)
            return 1;
        band_bytes = BAND_BYTES;
    }
    size_t bands = bytes / band_bytes;
    return bands < 1 ? 1 : bands > CUDA_BANDS_MAX ? CUDA_BANDS_MAX : (int)bands;
}

// The source rows that any op reads, from an even row on; they alone are uploaded.
static struct band rows_read(const struct plan *plan)
{
    struct band all = {plan->src.height, 0};
    for (int i = 0; i < plan->ops; i++) {
        const struct op *op = plan->op[i];
        struct band rows = op_source_rows(op, {0, op->dst.height});
        if (rows.y0 >= rows.y1)
            continue;
        all.y0 = rows.y0 < all.y0 ? rows.y0 : all.y0;
        all.y1 = rows.y1 > all.y1 ? rows.y1 : all.y1;
    }
    if (all.y0 >= all.y1)
        return {0, 0};
    return {all.y0 & ~1, all.y1};
}

static void split_source(struct plan *plan, int bands)
{
    struct band all = rows_read(plan);
    int rows =
        plan->src.memory == MEMORY_CUDA ? plan->src.height : rows_a_band(all.y1 - all.y0, bands);
    int y = all.y0;
    do {
        struct band *band = &plan->band[plan->bands++];
        *band = {y, y + rows < all.y1 ? y + rows : all.y1};
        y += rows;
    } while (y < all.y1);
}

// The last source band that a band of an op reads.
static int needs(const struct plan *plan, const struct op *op, struct band out)
{
    struct band rows = op_source_rows(op, out);
    if (rows.y0 >= rows.y1)
        return -1;
    int i = 0;
    while (plan->band[i].y1 < rows.y1)
        i++;
    return i;
}

static int by_need(const void *a, const void *b)
{
    const struct step *x = (const struct step *)a, *y = (const struct step *)b;
    if (x->needs != y->needs)
        return x->needs - y->needs;
    return x->out.y0 != y->out.y0 ? x->out.y0 - y->out.y0 : x->op - y->op;
}

static int schedule_init(struct plan *plan)
{
    int bands = bands_wanted(plan);
    split_source(plan, bands);
    plan->step = (struct step *)calloc((size_t)plan->ops * bands, sizeof *plan->step);
    if (!plan->step)
        return -ENOMEM;
    for (int i = 0; i < plan->ops; i++) {
        int height = plan->op[i]->dst.height, rows = rows_a_band(height, bands);
        for (int y = 0; y < height; y += rows) {
            struct band out = {y, y + rows < height ? y + rows : height};
            plan->step[plan->steps++] = {i, needs(plan, plan->op[i], out), out};
        }
    }
    qsort(plan->step, plan->steps, sizeof *plan->step, by_need);
    return 0;
}

// --- lanes

// `depth` source buffers, unless the frames are on the device already.
static cudaError_t source_init(struct lane *lane, const struct image *src)
{
    void *staging, *source;
    lane->staging = lane->source = *src;
    size_t bytes = image_lay_out(&lane->source, NULL);
    image_lay_out(&lane->staging, NULL);
    if (src->memory == MEMORY_CUDA)
        return cudaSuccess;
    CUDA_TRY(cudaHostAlloc(&staging, bytes, cudaHostAllocPortable));
    image_lay_out(&lane->staging, staging);
    CUDA_TRY(cudaMalloc(&source, bytes));
    image_lay_out(&lane->source, source);
    return cudaSuccess;
}

static cudaError_t event_init(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventBlockingSync | cudaEventDisableTiming);
}

static cudaError_t lane_init(struct lane *lane, struct plan *plan)
{
    lane->plan = plan;
    CUDA_TRY(source_init(lane, &plan->src));
    for (int i = 0; i < plan->ops; i++)
        CUDA_TRY(cudaMalloc((void **)&lane->result[i], plan->op[i]->dst_bytes));
    for (int i = 0; i < plan->bands; i++)
        CUDA_TRY(event_init(&lane->ready[i]));
    for (int i = 0; i < plan->backend->streams; i++)
        CUDA_TRY(event_init(&lane->finished[i]));
    return cudaSuccess;
}

static void lane_finish(struct lane *lane)
{
    cudaFreeHost(lane->staging.plane[0].data);
    cudaFree(lane->source.plane[0].data);
    for (int i = 0; i < PLAN_OPS_MAX; i++)
        cudaFree(lane->result[i]);
    for (int i = 0; i < CUDA_BANDS_MAX; i++)
        if (lane->ready[i])
            cudaEventDestroy(lane->ready[i]);
    for (int i = 0; i < CUDA_STREAMS_MAX; i++)
        if (lane->finished[i])
            cudaEventDestroy(lane->finished[i]);
}

static int lanes_init(struct plan *plan, int depth)
{
    cudaError_t error = cudaSuccess;
    plan->lane = (struct lane *)calloc(depth, sizeof *plan->lane);
    if (!plan->lane)
        return -ENOMEM;
    while (plan->lanes < depth && error == cudaSuccess) {
        struct lane *lane = &plan->lane[plan->lanes++];
        error = lane_init(lane, plan);
        lane->next = plan->idle;
        plan->idle = lane;
    }
    return cuda_errno(error);
}

// --- plan

int cuda_plan_init(struct plan *plan, struct backend *backend, const struct image *src,
                   const struct op *const ops[], int n, int depth)
{
    plan->backend = backend;
    plan->src = *src;
    plan->ops = n;
    memcpy(plan->op, ops, n * sizeof *ops);

    int error = ops_init(plan);
    if (!error)
        error = schedule_init(plan);
    if (!error)
        error = lanes_init(plan, depth);
    if (error)
        cuda_plan_finish(plan);
    return error;
}

void cuda_plan_finish(struct plan *plan)
{
    for (int i = 0; i < plan->lanes; i++)
        lane_finish(&plan->lane[i]);
    free(plan->lane);
    free(plan->step);
    for (int i = 0; i < plan->ops; i++)
        cudaFree(plan->warp[i]);
}
