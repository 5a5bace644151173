// Measures the kernels alone, and plain code that uses them.
#include <stdlib.h>
#include <string.h>

#include "tests/bench/cuda/measure.h"

// --- warp alone

cudaError_t warping_launch(const struct warping *warping, cudaStream_t stream)
{
    for (int i = 0; i < warping->n; i += CUDA_ITEMS_MAX) {
        const int left = warping->n - i;
        CUDA_TRY(warp_cuda.launch(&warping->items[i], left < CUDA_ITEMS_MAX ? left : CUDA_ITEMS_MAX,
                                  stream));
    }
    return cudaSuccess;
}

static cudaError_t warp_together(struct measure *measure, void *work)
{
    return warping_launch((const struct warping *)work, measure->up);
}

static cudaError_t warp_one_by_one(struct measure *measure, void *work)
{
    return cudaGraphLaunch(((const struct warping *)work)->graph, measure->up);
}

static cudaError_t make_graph(struct measure *measure, struct warping *warping)
{
    cudaGraph_t graph = NULL;
    cudaError_t error = cudaSuccess;
    CUDA_TRY(cudaStreamBeginCapture(measure->up, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < warping->n && error == cudaSuccess; i++)
        error = warp_cuda.launch(&warping->items[i], 1, measure->up);
    cudaError_t ended = cudaStreamEndCapture(measure->up, &graph);
    if (error == cudaSuccess)
        error = ended;
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(&warping->graph, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    return error;
}

static cudaError_t upload_picture(const struct image *src, uint8_t *to, struct plane plane[])
{
    struct image image = *src;
    image_lay_out(&image, to);
    for (int p = 0; p < pixel_format_planes(src->format); p++) {
        plane[p] = image.plane[p];
        CUDA_TRY(cudaMemcpy2D(plane[p].data, plane[p].stride, src->plane[p].data,
                              src->plane[p].stride, plane_row_bytes(src->format, p, src->width),
                              plane_rows(src->format, p, src->height), cudaMemcpyHostToDevice));
    }
    return cudaSuccess;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 511) & ~(size_t)511; // the alignment of separate device allocations
}

// Uploads the blocks one after another and sets each item's block address.
static cudaError_t upload_blocks(struct warping *warping, const struct op *const ops[], int n)
{
    size_t bytes = 0, at = 0;
    for (int i = 0; i < n; i++)
        bytes += aligned(warp_cuda.block_bytes(ops[i]));
    uint8_t *host = (uint8_t *)malloc(bytes);
    cudaError_t error =
        host ? cudaMalloc((void **)&warping->block, bytes) : cudaErrorMemoryAllocation;
    for (int i = 0; i < warping->n && error == cudaSuccess; i++) {
        warping->items[i].op = ops[i % n];
        warping->items[i].block = i < n ? warping->block + at : warping->items[i % n].block;
        if (i < n) {
            warp_cuda.block_pack(ops[i], host + at, warping->block + at, NULL);
            at += aligned(warp_cuda.block_bytes(ops[i]));
        }
    }
    if (error == cudaSuccess)
        error = cudaMemcpy(warping->block, host, bytes, cudaMemcpyHostToDevice);
    free(host);
    return error;
}

cudaError_t warping_init(struct measure *measure, struct warping *warping, const struct image src[],
                         int n_src, const struct op *const ops[], int n_ops)
{
    struct image layout = src[0];
    const size_t bytes = aligned(image_lay_out(&layout, NULL)), result = aligned(ops[0]->dst_bytes);
    memset(warping, 0, sizeof *warping);
    warping->n = n_src > n_ops ? n_src : n_ops;
    CUDA_TRY(upload_blocks(warping, ops, n_ops));
    CUDA_TRY(cudaMalloc((void **)&warping->src, n_src * bytes));
    CUDA_TRY(cudaMalloc((void **)&warping->dst, warping->n * result));
    for (int i = 0; i < warping->n; i++) {
        struct cuda_item *item = &warping->items[i];
        item->src = src[i % n_src];
        item->src.memory = MEMORY_CUDA;
        CUDA_TRY(
            upload_picture(&src[i % n_src], warping->src + i % n_src * bytes, item->src.plane));
        item->dst = warping->dst + i * result;
        item->band.y1 = item->op->dst.height;
    }
    CUDA_TRY(warp_cuda.load(ops[0]));
    return make_graph(measure, warping);
}

void warping_finish(struct warping *warping)
{
    if (warping->graph)
        cudaGraphExecDestroy(warping->graph);
    cudaFree(warping->dst);
    cudaFree(warping->src);
    cudaFree(warping->block);
}

int measure_warp(struct measure *measure, const struct image src[], int n, const struct op *op,
                 bool together, int rounds, double seconds[])
{
    struct warping warping;
    const struct op *const ops[] = {op};
    cudaError_t error =
        warping_init(measure, &warping, src, n < CUDA_ITEMS_MAX ? n : CUDA_ITEMS_MAX, ops, 1);
    if (error == cudaSuccess)
        error = measure_by_device(measure, together ? warp_together : warp_one_by_one, &warping,
                                  rounds, seconds);
    warping_finish(&warping);
    return cuda_errno(error);
}

int measure_elements(struct measure *measure, const struct image *src, const struct op *const ops[],
                     int n, int rounds, double seconds[])
{
    struct warping warping;
    cudaError_t error = warping_init(measure, &warping, src, 1, ops, n < TILES_MAX ? n : TILES_MAX);
    if (error == cudaSuccess)
        error = measure_by_device(measure, warp_together, &warping, rounds, seconds);
    warping_finish(&warping);
    return cuda_errno(error);
}

// --- yuv

struct converting {
    const struct op *op;
    struct image host;
    struct cuda_item item;       // converts `from` to `result`, on the device
    uint8_t *from, *result, *to; // to: host
    size_t bytes;
};

static cudaError_t convert(struct measure *measure, void *work)
{
    const struct converting *c = (const struct converting *)work;
    return yuv_cuda.launch(&c->item, 1, measure->up);
}

static cudaError_t convert_plainly(struct measure *measure, void *work)
{
    const struct converting *c = (const struct converting *)work;
    (void)measure;
    CUDA_TRY(cudaMemcpyAsync(c->from, c->host.plane[0].data, c->bytes, cudaMemcpyHostToDevice, 0));
    CUDA_TRY(yuv_cuda.launch(&c->item, 1, 0));
    return cudaMemcpyAsync(c->to, c->result, c->op->dst_bytes, cudaMemcpyDeviceToHost, 0);
}

// Source planes are tight.
static cudaError_t converting_init(struct converting *c)
{
    struct image *src = &c->item.src;
    *src = c->host;
    c->bytes = image_lay_out(src, NULL);
    CUDA_TRY(cudaMalloc((void **)&c->from, c->bytes));
    CUDA_TRY(cudaMalloc((void **)&c->result, c->op->dst_bytes));
    image_lay_out(src, c->from);
    src->memory = MEMORY_CUDA;
    c->item.dst = c->result;
    c->item.op = c->op;
    c->item.band.y1 = c->op->dst.height;
    CUDA_TRY(yuv_cuda.load(c->op));
    return cudaMemcpy(c->from, c->host.plane[0].data, c->bytes, cudaMemcpyHostToDevice);
}

static int time_yuv(struct measure *measure, struct converting *c, int rounds, double seconds[])
{
    cudaError_t error = converting_init(c);
    if (error == cudaSuccess)
        error = c->to ? measure_by_host(measure, convert_plainly, c, rounds, seconds)
                      : measure_by_device(measure, convert, c, rounds, seconds);
    cudaFree(c->result);
    cudaFree(c->from);
    return cuda_errno(error);
}

int measure_yuv(struct measure *measure, const struct image *src, const struct op *op, int rounds,
                double seconds[])
{
    struct converting c;
    memset(&c, 0, sizeof c);
    c.op = op;
    c.host = *src;
    return time_yuv(measure, &c, rounds, seconds);
}

int measure_yuv_plain(struct measure *measure, const struct image *src, const struct op *op,
                      uint8_t *to, int rounds, double seconds[])
{
    struct converting c;
    memset(&c, 0, sizeof c);
    c.op = op;
    c.host = *src;
    c.to = to;
    return time_yuv(measure, &c, rounds, seconds);
}
