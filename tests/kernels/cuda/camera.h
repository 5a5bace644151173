// For tests of the CUDA backend: a source picture with five ops and the reference's results, and
// copies of the picture in every kind of memory.
#ifndef FRAMED_TESTS_KERNELS_CUDA_CAMERA_H
#define FRAMED_TESTS_KERNELS_CUDA_CAMERA_H

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops.h"
#include "tests/test.h"

enum { OPS = 5, MOVES = 4 /* a job may replace this op */ };

struct camera {
    struct image src; // tight, on the host
    struct op op[OPS];
    const struct op *ops[OPS];
    uint8_t *expected[OPS];
    struct op moved; // comes with a job
    uint8_t *moved_expected;
};

static inline void fill_random(uint8_t *memory, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        memory[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
}

static inline struct warp_params warp_params(int width, int height)
{
    struct warp_params warp;
    memset(&warp, 0, sizeof warp);
    warp.width = width;
    warp.height = height;
    warp.scale = 1;
    for (int i = 0; i < 3; i++) {
        warp.fill[i] = 114;
        warp.std[i] = 1;
    }
    return warp;
}

static inline void params_init(struct op_params params[OPS])
{
    memset(params, 0, OPS * sizeof *params);
    params[0].kind = OP_WARP; // planar floats
    params[0].warp = warp_params(97, 61);
    params[0].warp.dtype = DTYPE_F32;
    params[0].warp.scale = 1 / 255.0;
    params[1].kind = OP_YUV;
    params[1].yuv.format = PIXEL_YUV420P;
    params[2].kind = OP_WARP; // its first rows need the last source rows
    params[2].warp = warp_params(64, 80);
    params[2].warp.rotate = 155;
    params[2].warp.layout = LAYOUT_NHWC;
    params[2].warp.order = ORDER_BGR;
    params[3].kind = OP_WARP; // shares a launch with the op before it
    params[3].warp = warp_params(33, 201);
    params[3].warp.order = ORDER_GRAY;
    params[4].kind = OP_WARP; // shares a launch with the first op
    params[4].warp = warp_params(160, 9);
    params[4].warp.dtype = DTYPE_F32;
    params[4].warp.fit = FIT_STRETCH;
}

// Initialises the op. Returns the reference's result for the picture.
static inline uint8_t *camera_op(struct op *op, const struct op_params *params,
                                 const struct image *src)
{
    struct image dst;
    CHECK(op_init(op, params, src) == 0, "op");
    uint8_t *expected = (uint8_t *)malloc(op->dst_bytes);
    op_lay_out(op, &dst, expected);
    struct band all = {0, op->dst.height};
    op_reference(&dst, src, op, all, false);
    return expected;
}

static inline void camera_init(struct camera *camera, enum pixel_format format, int width,
                               int height)
{
    struct op_params params[OPS];
    memset(camera, 0, sizeof *camera);
    camera->src.format = format;
    camera->src.width = width;
    camera->src.height = height;
    size_t bytes = image_lay_out(&camera->src, NULL);
    uint8_t *memory = (uint8_t *)malloc(bytes);
    fill_random(memory, bytes, format * 1000 + width);
    image_lay_out(&camera->src, memory);

    params_init(params);
    for (int i = 0; i < OPS; i++) {
        camera->expected[i] = camera_op(&camera->op[i], &params[i], &camera->src);
        camera->ops[i] = &camera->op[i];
    }
    camera->op[MOVES].moves = true;
    params[MOVES].warp.crop = {width / 3, height / 4, width / 2, height / 5};
    camera->moved_expected = camera_op(&camera->moved, &params[MOVES], &camera->src);
}

static inline void camera_finish(struct camera *camera)
{
    for (int i = 0; i < OPS; i++) {
        op_finish(&camera->op[i]);
        free(camera->expected[i]);
    }
    op_finish(&camera->moved);
    free(camera->moved_expected);
    free(camera->src.plane[0].data);
}

// --- sources

enum placement {
    HOST,
    HOST_PADDED,
    HOST_UPSIDE_DOWN,
    PINNED,
    PINNED_PADDED, // the stride is too large for the device's copy to keep
    PINNED_UPSIDE_DOWN,
    PINNED_ALIGNED, // the device's copy keeps the stride
    DEVICE,
    PLACEMENTS
};

struct source {
    struct image image;
    enum placement placement;
    void *memory[PLANES_MAX];
};

// Returns the bytes between the rows of a plane on the host.
static inline size_t padding(enum placement placement, size_t row_bytes)
{
    switch (placement) {
    case HOST_PADDED:
    case HOST_UPSIDE_DOWN:
    case PINNED_UPSIDE_DOWN:
        return 14;
    case PINNED_PADDED:
        return row_bytes;
    case PINNED_ALIGNED:
        return (64 - row_bytes % 64) % 64;
    default:
        return 0;
    }
}

static inline void plane_to_host(struct source *source, const struct image *tight, int p)
{
    const size_t row_bytes = plane_row_bytes(tight->format, p, tight->width);
    const int rows = plane_rows(tight->format, p, tight->height);
    const bool pinned = source->placement >= PINNED;
    const size_t stride = row_bytes + padding(source->placement, row_bytes);
    struct plane *plane = &source->image.plane[p];

    if (pinned)
        CHECK(!cudaHostAlloc(&source->memory[p], rows * stride, cudaHostAllocPortable), "pinned");
    else
        source->memory[p] = malloc(rows * stride);
    plane->data = (uint8_t *)source->memory[p];
    plane->stride = stride;
    if (source->placement == HOST_UPSIDE_DOWN || source->placement == PINNED_UPSIDE_DOWN) {
        plane->data += (rows - 1) * stride;
        plane->stride = -plane->stride;
    }
    for (int y = 0; y < rows; y++)
        memcpy(plane->data + y * plane->stride, tight->plane[p].data + y * row_bytes, row_bytes);
}

// Allocates a plane on the device, filled with other bytes for now.
static inline void plane_to_device(struct source *source, const struct image *tight, int p)
{
    size_t pitch;
    const int rows = plane_rows(tight->format, p, tight->height);
    CHECK(!cudaMallocPitch(&source->memory[p], &pitch,
                           plane_row_bytes(tight->format, p, tight->width), rows),
          "pitched");
    CHECK(!cudaMemset(source->memory[p], 0x5A, pitch * rows), "memset");
    source->image.plane[p].data = (uint8_t *)source->memory[p];
    source->image.plane[p].stride = pitch;
}

static inline void source_init(struct source *source, const struct camera *camera,
                               enum placement placement)
{
    memset(source, 0, sizeof *source);
    source->image = camera->src;
    source->placement = placement;
    source->image.memory = placement == DEVICE   ? MEMORY_CUDA
                           : placement >= PINNED ? MEMORY_PINNED
                                                 : MEMORY_HOST;
    for (int p = 0; p < pixel_format_planes(camera->src.format); p++)
        if (placement == DEVICE)
            plane_to_device(source, &camera->src, p);
        else
            plane_to_host(source, &camera->src, p);
    cudaDeviceSynchronize();
}

static inline void source_finish(struct source *source)
{
    for (int p = 0; p < PLANES_MAX; p++) {
        if (source->placement == DEVICE)
            cudaFree(source->memory[p]);
        else if (source->placement >= PINNED)
            cudaFreeHost(source->memory[p]);
        else
            free(source->memory[p]);
    }
}

// Writes as a decoder does: on the legacy default stream, without waiting.
static inline cudaError_t decode_into(struct source *source, const struct image *from)
{
    cudaError_t error = cudaSuccess;
    for (int p = 0; p < pixel_format_planes(from->format) && !error; p++) {
        const struct plane *to = &source->image.plane[p];
        error = cudaMemcpy2DAsync(to->data, to->stride, from->plane[p].data, from->plane[p].stride,
                                  plane_row_bytes(from->format, p, from->width),
                                  plane_rows(from->format, p, from->height), cudaMemcpyHostToDevice,
                                  cudaStreamLegacy);
    }
    return error;
}

#endif
