// The warp on CUDA: a thread makes one output pixel with the functions of sample.h.
#include "kernels/cuda.h"
#include "kernels/sample.h"

enum { BLOCK_WIDTH = 32, BLOCK_HEIGHT = 8 };

// T has the size of the tensor's element; its values come out of the op's table ready made.
template <enum pixel_format FORMAT, typename T>
static __global__ void warp_pixel(const __grid_constant__ struct image dst,
                                  const __grid_constant__ struct image src,
                                  const struct warp *__restrict__ warp, struct band band)
{
    const int x = blockIdx.x * BLOCK_WIDTH + threadIdx.x;
    const int y = band.y0 + blockIdx.y * BLOCK_HEIGHT + threadIdx.y;
    if (x >= warp->width || y >= band.y1)
        return;

    uint8_t level[3];
    warp_levels(&src, warp, FORMAT, warp->colx[x] + warp->rowx[y], warp->coly[x] + warp->rowy[y],
                level);

    const T *table = (const T *)&warp->table;
    const bool planar = warp->layout == LAYOUT_NCHW;
    for (int c = 0; c < warp->channels; c++) {
        const struct plane plane = dst.plane[planar ? c : 0];
        T *row = (T *)(plane.data + (ptrdiff_t)y * plane.stride);
        row[planar ? x : x * warp->channels + c] = table[256 * c + level[c]];
    }
}

template <typename T> static const void *kernel_of(enum pixel_format source)
{
    switch (source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        return (const void *)warp_pixel<format, T>;
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        return NULL;
    }
}

const void *warp_cuda_kernel(const struct warp *warp)
{
    switch (warp->dtype) {
    case DTYPE_U8:
    case DTYPE_S8:
        return kernel_of<uint8_t>(warp->source);
    case DTYPE_F16:
        return kernel_of<uint16_t>(warp->source);
    case DTYPE_F32:
        return kernel_of<uint32_t>(warp->source);
    }
    return NULL;
}

cudaError_t warp_cuda(const struct image *dst, const struct image *src, const struct warp *warp,
                      const struct warp *device, struct band band, cudaStream_t stream)
{
    const dim3 block(BLOCK_WIDTH, BLOCK_HEIGHT);
    const dim3 grid((warp->width + BLOCK_WIDTH - 1) / BLOCK_WIDTH,
                    (band.y1 - band.y0 + BLOCK_HEIGHT - 1) / BLOCK_HEIGHT);
    void *arguments[] = {(void *)dst, (void *)src, (void *)&device, (void *)&band};
    return cudaLaunchKernel(warp_cuda_kernel(warp), grid, block, arguments, 0, stream);
}
