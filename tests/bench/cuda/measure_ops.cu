// What the kernels do alone, and what plain code around them does.
#include <stdlib.h>
#include <string.h>

#include "tests/bench/cuda/measure.h"

// --- warp alone

struct warping {
    struct cuda_item items[CUDA_ITEMS_MAX];
    int n;
    uint8_t *src, *dst, *block;
    cudaGraphExec_t graph; // the launches one by one, without the host's part in them
};

static cudaError_t warp_together(struct measure *measure, void *work)
{
    const struct warping *warping = (const struct warping *)work;
    return warp_cuda.launch(warping->items, warping->n, measure->up);
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
    return (bytes + 511) & ~(size_t)511; // what device memory of its own would have
}

static cudaError_t upload_block(struct warping *warping, const struct op *op)
{
    const size_t bytes = warp_cuda.block_bytes(op);
    uint8_t *host = (uint8_t *)malloc(bytes);
    cudaError_t error =
        host ? cudaMalloc((void **)&warping->block, bytes) : cudaErrorMemoryAllocation;
    if (error == cudaSuccess) {
        warp_cuda.block_pack(op, host, warping->block);
        error = cudaMemcpy(warping->block, host, bytes, cudaMemcpyHostToDevice);
    }
    free(host);
    return error;
}

static cudaError_t warping_init(struct measure *measure, struct warping *warping,
                                const struct image src[], const struct op *op)
{
    struct image layout = src[0];
    const size_t bytes = aligned(image_lay_out(&layout, NULL)), result = aligned(op->dst_bytes);
    CUDA_TRY(upload_block(warping, op));
    CUDA_TRY(cudaMalloc((void **)&warping->src, warping->n * bytes));
    CUDA_TRY(cudaMalloc((void **)&warping->dst, warping->n * result));
    for (int i = 0; i < warping->n; i++) {
        struct cuda_item *item = &warping->items[i];
        CUDA_TRY(upload_picture(&src[i], warping->src + i * bytes, item->src.plane));
        item->dst = warping->dst + i * result;
        item->block = warping->block;
        item->op = op;
        item->band.y1 = op->dst.height;
    }
    CUDA_TRY(warp_cuda.load(op));
    return make_graph(measure, warping);
}

static void warping_finish(struct warping *warping)
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
    memset(&warping, 0, sizeof warping);
    warping.n = n < CUDA_ITEMS_MAX ? n : CUDA_ITEMS_MAX;
    cudaError_t error = warping_init(measure, &warping, src, op);
    if (error == cudaSuccess)
        error = measure_by_device(measure, together ? warp_together : warp_one_by_one, &warping,
                                  rounds, seconds);
    warping_finish(&warping);
    return cuda_errno(error);
}

// --- yuv

struct converting {
    const struct op *op;
    struct image host;
    struct cuda_item item;       // from `from` to `result`, on the device
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

// Sources are tight.
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
