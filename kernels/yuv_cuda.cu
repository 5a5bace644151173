// RGB or YUV to YUV on CUDA: a thread makes one pixel of a 4:4:4 result, or one 2x2 block of a
// 4:2:0 result, with the functions of sample.h.
#include "kernels/cuda.h"
#include "kernels/sample.h"

enum { BLOCK_WIDTH = 32, BLOCK_HEIGHT = 8 };

static inline __device__ void store(const struct image *dst, enum pixel_format format, int c, int x,
                                    int y, int level)
{
    const struct component k = component_of(format, c);
    component_row(dst, k, y)[x * k.step] = (uint8_t)level;
}

template <enum pixel_format FORMAT>
static __global__ void convert_444(const __grid_constant__ struct image dst,
                                   const __grid_constant__ struct image src,
                                   const __grid_constant__ struct yuv yuv, struct band band)
{
    const int x = blockIdx.x * BLOCK_WIDTH + threadIdx.x;
    const int y = band.y0 + blockIdx.y * BLOCK_HEIGHT + threadIdx.y;
    if (x >= yuv.width || y >= band.y1)
        return;

    uint8_t rgb[3];
    rgb_at(&src, &yuv, FORMAT, x, y, rgb);
    for (int c = 0; c < 3; c++)
        store(&dst, yuv.format, c, x, y, yuv_level(&yuv.yuv, c, rgb[0], rgb[1], rgb[2]));
}

// Beyond an odd right or bottom edge the edge pixel counts again.
template <enum pixel_format FORMAT>
static __global__ void convert_420(const __grid_constant__ struct image dst,
                                   const __grid_constant__ struct image src,
                                   const __grid_constant__ struct yuv yuv, struct band band)
{
    const int x = 2 * (blockIdx.x * BLOCK_WIDTH + threadIdx.x);
    const int y = band.y0 + 2 * (blockIdx.y * BLOCK_HEIGHT + threadIdx.y);
    if (x >= yuv.width || y >= band.y1)
        return;

    int sum[3] = {0, 0, 0};
    for (int i = 0; i < 4; i++) {
        const int px = min(x + (i & 1), yuv.width - 1), py = min(y + (i >> 1), yuv.height - 1);
        uint8_t rgb[3];
        rgb_at(&src, &yuv, FORMAT, px, py, rgb);
        store(&dst, yuv.format, 0, px, py, yuv_level(&yuv.yuv, 0, rgb[0], rgb[1], rgb[2]));
        for (int c = 0; c < 3; c++)
            sum[c] += rgb[c];
    }
    const int r = block_mean(sum[0]), g = block_mean(sum[1]), b = block_mean(sum[2]);
    for (int c = 1; c < 3; c++)
        store(&dst, yuv.format, c, x / 2, y / 2, yuv_level(&yuv.yuv, c, r, g, b));
}

template <enum pixel_format FORMAT>
static __global__ void keep_444(const __grid_constant__ struct image dst,
                                const __grid_constant__ struct image src,
                                const __grid_constant__ struct yuv yuv, struct band band)
{
    const int x = blockIdx.x * BLOCK_WIDTH + threadIdx.x;
    const int y = band.y0 + blockIdx.y * BLOCK_HEIGHT + threadIdx.y;
    if (x >= yuv.width || y >= band.y1)
        return;

    store(&dst, yuv.format, 0, x, y, kept_at(&src, FORMAT, 0, x, y));
    for (int c = 1; c < 3; c++)
        store(&dst, yuv.format, c, x, y, kept_interpolated(chroma_at(&src, &yuv, FORMAT, c, x, y)));
}

template <enum pixel_format FORMAT>
static __global__ void keep_420(const __grid_constant__ struct image dst,
                                const __grid_constant__ struct image src,
                                const __grid_constant__ struct yuv yuv, struct band band)
{
    const int x = 2 * (blockIdx.x * BLOCK_WIDTH + threadIdx.x);
    const int y = band.y0 + 2 * (blockIdx.y * BLOCK_HEIGHT + threadIdx.y);
    if (x >= yuv.width || y >= band.y1)
        return;

    for (int i = 0; i < 4; i++) {
        const int px = min(x + (i & 1), yuv.width - 1), py = min(y + (i >> 1), yuv.height - 1);
        store(&dst, yuv.format, 0, px, py, kept_at(&src, FORMAT, 0, px, py));
    }
    for (int c = 1; c < 3; c++)
        store(&dst, yuv.format, c, x / 2, y / 2, kept_at(&src, FORMAT, c, x / 2, y / 2));
}

template <enum pixel_format FORMAT> static const void *kernel_of(const struct yuv *yuv)
{
    if (!yuv->convert)
        return format_is_420(yuv->format) ? (const void *)keep_420<FORMAT>
                                          : (const void *)keep_444<FORMAT>;
    return format_is_420(yuv->format) ? (const void *)convert_420<FORMAT>
                                      : (const void *)convert_444<FORMAT>;
}

const void *yuv_cuda_kernel(const struct yuv *yuv)
{
    switch (yuv->source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        return kernel_of<format>(yuv);
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        return NULL;
    }
}

cudaError_t yuv_cuda(const struct image *dst, const struct image *src, const struct yuv *yuv,
                     struct band band, cudaStream_t stream)
{
    const int side = format_is_420(yuv->format) ? 2 : 1; // of a thread's block of pixels
    const int width = BLOCK_WIDTH * side, height = BLOCK_HEIGHT * side;
    const dim3 block(BLOCK_WIDTH, BLOCK_HEIGHT);
    const dim3 grid((yuv->width + width - 1) / width, (band.y1 - band.y0 + height - 1) / height);
    void *arguments[] = {(void *)dst, (void *)src, (void *)yuv, (void *)&band};
    return cudaLaunchKernel(yuv_cuda_kernel(yuv), grid, block, arguments, 0, stream);
}
