// RGB or YUV to YUV on CUDA. With another geometry, the warp's kernels make it, or it goes through
// RGB made like the warp's. Else a thread makes four pixels of a row of a 4:4:4 result, or of two
// rows of a 4:2:0 result: with wide loads and stores if addresses and the picture's edges allow,
// else block by block with yuv_block. The same holds with a LUT if pixels stay where they are.
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/lut.cuh"
#include "kernels/cuda/warp_item.cuh"
#include "kernels/cuda/yuv_tile.cuh"
#include "kernels/yuv.h"

enum {
    BLOCK_WIDTH = 32,
    BLOCK_HEIGHT = 8,
    LUT_RESIDENT = 4, // like resident(), with a LUT
};

// --- tiles

// `lut`: the LUT to apply, or NULL, which must be a constant.
template <enum pixel_format FORMAT>
static __device__ inline void convert_tile(const struct image *dst, const struct image *src,
                                           const struct yuv *yuv, const struct lut_registers *lut,
                                           int x, int y)
{
    int rgb[3][TILE], level[3][TILE];
    read_as_rgb<FORMAT>(src, yuv, x, y, rgb);
    if (lut)
        lut_look_up<TILE>(lut, rgb);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < TILE; i++)
            level[c][i] = yuv_level(&yuv->yuv, c, rgb[0][i], rgb[1][i], rgb[2][i]);
    write_444(dst, yuv->format, x, y, level);
}

template <enum pixel_format FORMAT>
static __device__ inline void convert_tile_420(const struct image *dst, const struct image *src,
                                               const struct yuv *yuv,
                                               const struct lut_registers *lut, int x, int y)
{
    int rgb[2][3][TILE], mean[3][2], u[2], v[2];
    read_rows_as_rgb<FORMAT>(src, yuv, x, y, rgb);
#pragma unroll
    for (int row = 0; lut && row < 2; row++)
        lut_look_up<TILE>(lut, rgb[row]);
#pragma unroll
    for (int row = 0; row < 2; row++) {
        int luma[TILE];
        for (int i = 0; i < TILE; i++)
            luma[i] = yuv_level(&yuv->yuv, 0, rgb[row][0][i], rgb[row][1][i], rgb[row][2][i]);
        write_four(dst, 0, x, y + row, luma);
    }
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 2; i++)
            mean[c][i] = block_mean(rgb[0][c][2 * i] + rgb[0][c][2 * i + 1] + rgb[1][c][2 * i] +
                                    rgb[1][c][2 * i + 1]);
    for (int i = 0; i < 2; i++) {
        u[i] = yuv_level(&yuv->yuv, 1, mean[0][i], mean[1][i], mean[2][i]);
        v[i] = yuv_level(&yuv->yuv, 2, mean[0][i], mean[1][i], mean[2][i]);
    }
    write_chroma(dst, yuv->format, x, y, u, v);
}

template <enum pixel_format FORMAT>
static __device__ inline void kept_luma(const struct image *src, int x, int y, int luma[TILE])
{
    read_luma<FORMAT>(src, x, y, luma);
    for (int i = 0; i < TILE; i++)
        luma[i] = kept_of(luma[i], source_is_10bit(FORMAT) ? 2 : 0);
}

template <enum pixel_format FORMAT>
static __device__ inline void keep_tile(const struct image *dst, const struct image *src,
                                        const struct yuv *yuv, int x, int y)
{
    int level[3][TILE];
    kept_luma<FORMAT>(src, x, y, level[0]);
    for (int c = 1; c < 3; c++) {
        read_chroma<FORMAT>(src, yuv, c, x, y, level[c]);
        for (int i = 0; i < TILE; i++)
            level[c][i] = kept_interpolated(level[c][i]);
    }
    write_444(dst, yuv->format, x, y, level);
}

template <enum pixel_format FORMAT>
static __device__ inline void keep_tile_420(const struct image *dst, const struct image *src,
                                            const struct yuv *yuv, int x, int y)
{
    int luma[2][TILE], u[2], v[2];
    for (int row = 0; row < 2; row++)
        kept_luma<FORMAT>(src, x, y + row, luma[row]);
    const bool same = position_sub(yuv->chroma_x) > 0 && position_sub(yuv->chroma_y) > 0;
    for (int i = 0; i < 2; i++) {
        u[i] = same ? kept_at(src, FORMAT, 1, x / 2 + i, y / 2)
                    : kept_mean(src, yuv, FORMAT, 1, x + 2 * i, y);
        v[i] = same ? kept_at(src, FORMAT, 2, x / 2 + i, y / 2)
                    : kept_mean(src, yuv, FORMAT, 2, x + 2 * i, y);
    }
    for (int row = 0; row < 2; row++)
        write_four(dst, 0, x, y + row, luma[row]);
    write_chroma(dst, yuv->format, x, y, u, v);
}

// --- kernels

// `wide`: all planes are aligned, so that whole tiles can be loaded and stored as words.
#define KERNEL_ARGUMENTS                                                                           \
    const __grid_constant__ struct image dst, const __grid_constant__ struct image src,            \
        const __grid_constant__ struct yuv yuv, struct band band, bool wide

static __device__ inline int tile_x(void)
{
    return TILE * (blockIdx.x * BLOCK_WIDTH + threadIdx.x);
}

static __device__ inline int tile_y(struct band band, int rows)
{
    return band.y0 + rows * (blockIdx.y * BLOCK_HEIGHT + threadIdx.y);
}

// Threads per multiprocessor. ptxas ignores a launch bound above that.
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ == 800 || (__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200)
#define RESIDENT_THREADS 2048
#elif __CUDA_ARCH__ == 750
#define RESIDENT_THREADS 1024
#else
#define RESIDENT_THREADS 1536
#endif

// Returns the blocks per multiprocessor, which bounds a thread's registers.
static FRAMED_HD constexpr int resident(enum pixel_format format, bool convert, bool halved)
{
    const int wanted = format <= PIXEL_GBRP || (halved && !convert) ? 8 : halved ? 5 : 6;
    const int most = RESIDENT_THREADS / (BLOCK_WIDTH * BLOCK_HEIGHT);
    return wanted < most ? wanted : most;
}

// CONVERT and HALVED are as in yuv_block.
template <enum pixel_format FORMAT, bool CONVERT, bool HALVED>
static __global__ void __launch_bounds__(BLOCK_WIDTH *BLOCK_HEIGHT,
                                         resident(FORMAT, CONVERT, HALVED))
    yuv_tiles(KERNEL_ARGUMENTS)
{
    const int x = tile_x(), y = tile_y(band, 1 + HALVED), end = min(x + TILE, yuv.width);
    if (y >= band.y1)
        return;
    if (!wide || x + TILE > yuv.width || y + 1 + HALVED > yuv.height) {
        const struct pixel_layout layout = pixel_layout_of(yuv.format);
        FRAMED_ROLLED
        for (int i = x; i < end; i += 1 + HALVED)
            yuv_block(&dst, &src, &yuv, NULL, layout.component, FORMAT, CONVERT, HALVED, i, y);
    } else if (CONVERT && HALVED) {
        convert_tile_420<FORMAT>(&dst, &src, &yuv, NULL, x, y);
    } else if (CONVERT) {
        convert_tile<FORMAT>(&dst, &src, &yuv, NULL, x, y);
    } else if (HALVED) {
        keep_tile_420<FORMAT>(&dst, &src, &yuv, x, y);
    } else {
        keep_tile<FORMAT>(&dst, &src, &yuv, x, y);
    }
}

// A thread makes a block of a picture with another geometry, through the RGB that `warp`, in device
// memory, makes.
template <enum pixel_format FORMAT, bool HALVED>
static __global__ void __launch_bounds__(BLOCK_WIDTH *BLOCK_HEIGHT)
    yuv_resized_blocks(const __grid_constant__ struct image dst,
                       const __grid_constant__ struct image src,
                       const __grid_constant__ struct yuv yuv, struct band band,
                       const struct warp *__restrict__ warp)
{
    const int x = (1 + HALVED) * (blockIdx.x * BLOCK_WIDTH + threadIdx.x);
    const int y = tile_y(band, 1 + HALVED);
    const struct pixel_layout layout = pixel_layout_of(yuv.format);
    if (x < yuv.width && y < band.y1)
        yuv_block(&dst, &src, &yuv, warp, layout.component, FORMAT, true, HALVED, x, y);
}

// Passes a picture of whole tiles, whose pixels stay where they are, through the LUT of `warp`,
// which is in device memory.
template <enum pixel_format FORMAT, bool HALVED>
static __global__ void __launch_bounds__(BLOCK_WIDTH *BLOCK_HEIGHT, LUT_RESIDENT)
    yuv_looked_up_tiles(const __grid_constant__ struct image dst,
                        const __grid_constant__ struct image src,
                        const __grid_constant__ struct yuv yuv, struct band band,
                        const struct warp *__restrict__ warp)
{
    const int x = tile_x(), y = tile_y(band, 1 + HALVED);
    if (x >= yuv.width || y >= band.y1)
        return;
    const struct lut_registers lut = lut_registers_of(warp->lut);
    if (HALVED)
        convert_tile_420<FORMAT>(&dst, &src, &yuv, &lut, x, y);
    else
        convert_tile<FORMAT>(&dst, &src, &yuv, &lut, x, y);
}

// --- launch

template <enum pixel_format FORMAT, bool CONVERT>
static const void *kernel_for(const struct yuv *yuv)
{
    return format_is_420(yuv->format) ? (const void *)yuv_tiles<FORMAT, CONVERT, true>
                                      : (const void *)yuv_tiles<FORMAT, CONVERT, false>;
}

static const void *kernel_of(const struct yuv *yuv)
{
    switch (yuv->source) {
#define RGB(format)                                                                                \
    case format:                                                                                   \
        return kernel_for<format, true>(yuv);
#define YUV(format)                                                                                \
    case format:                                                                                   \
        return yuv->convert ? kernel_for<format, true>(yuv) : kernel_for<format, false>(yuv);
        FOR_EACH_RGB_SOURCE(RGB)
        FOR_EACH_YUV_SOURCE(YUV)
#undef RGB
#undef YUV
    default:
        return NULL;
    }
}

static bool plane_is_aligned(const struct plane *plane, int bytes)
{
    return (uintptr_t)plane->data % bytes == 0 && plane->stride % bytes == 0;
}

// Chroma is read sample by sample.
static bool source_is_wide(const struct image *src, enum pixel_format format)
{
    const int bytes = tile_bytes(format), word = bytes == 12 ? 4 : bytes;
    for (int i = 0; i < (source_is_rgb(format) ? pixel_format_planes(format) : 1); i++)
        if (!plane_is_aligned(&src->plane[i], word))
            return false;
    return true;
}

static bool result_is_wide(const struct image *dst, enum pixel_format format)
{
    for (int i = 0; i < pixel_format_planes(format); i++)
        if (!plane_is_aligned(&dst->plane[i], format == PIXEL_YUV420P && i > 0 ? 2 : 4))
            return false;
    return true;
}

static const void *resized_kernel_of(const struct yuv *yuv)
{
    const bool halved = format_is_420(yuv->format);
    switch (yuv->warps[0].source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        return halved ? (const void *)yuv_resized_blocks<format, true>                             \
                      : (const void *)yuv_resized_blocks<format, false>;
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        return NULL;
    }
}

static const void *looked_up_kernel_of(const struct yuv *yuv)
{
    const bool halved = format_is_420(yuv->format);
    switch (yuv->warps[0].source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        return halved ? (const void *)yuv_looked_up_tiles<format, true>                            \
                      : (const void *)yuv_looked_up_tiles<format, false>;
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        return NULL;
    }
}

// Returns true if the positions are n successive samples.
static bool positions_stay(const int32_t *table, int n)
{
    return steps_are_whole(table, n) && table[0] == 0 && table[n - 1] == (n - 1) * 65536;
}

// Returns true if the warp changes only colours.
static bool pixels_stay(const struct warp *warp, const struct image *src)
{
    return warp->rows && warp->x0 == 0 && warp->y0 == 0 && warp->x1 == src->width &&
           warp->y1 == src->height && warp->width == src->width && warp->height == src->height &&
           positions_stay(warp->colx, warp->width) && positions_stay(warp->rowy, warp->height);
}

static bool is_looked_up(const struct yuv *yuv, const struct image *dst, const struct image *src)
{
    const struct warp *warp = &yuv->warps[0];
    return warp->lut && pixels_stay(warp, src) && yuv->width % TILE == 0 && yuv->height % 2 == 0 &&
           source_is_wide(src, warp->source) && result_is_wide(dst, yuv->format) &&
           sums_are_exact(&yuv->rgb);
}

static cudaError_t launch_converted(const struct cuda_item *item, const struct image *dst,
                                    cudaStream_t stream)
{
    const struct yuv *yuv = &item->op->yuv;
    const bool tiles = is_looked_up(yuv, dst, &item->src);
    const int block = format_is_420(yuv->format) ? 2 : 1;
    const int width = BLOCK_WIDTH * (tiles ? (int)TILE : block), height = BLOCK_HEIGHT * block;
    const int rows = item->band.y1 - item->band.y0;
    const dim3 grid((yuv->width + width - 1) / width, (rows + height - 1) / height);
    void *arguments[] = {(void *)dst, (void *)&item->src, (void *)yuv, (void *)&item->band,
                         (void *)&item->block};
    return cudaLaunchKernel(tiles ? looked_up_kernel_of(yuv) : resized_kernel_of(yuv), grid,
                            dim3(BLOCK_WIDTH, BLOCK_HEIGHT), arguments, 0, stream);
}

static cudaError_t launch_resized(const struct cuda_item *item, const struct image *dst,
                                  cudaStream_t stream)
{
    const struct yuv *yuv = &item->op->yuv;
    struct yuv_part parts[YUV_WARPS_MAX];
    struct cuda_warp warps[YUV_WARPS_MAX];
    const uint8_t *block = (const uint8_t *)item->block;
    if (yuv->convert)
        return launch_converted(item, dst, stream);
    const int n = yuv_parts(parts, yuv, dst, item->band);
    for (int i = 0; i < n; i++) {
        warps[i] = {item->src, parts[i].dst.plane[0].data, block, parts[i].warp, parts[i].band};
        block += warp_block_bytes(parts[i].warp);
    }
    return warps_launch(warps, n, true, stream);
}

static cudaError_t launch_item(const struct cuda_item *item, cudaStream_t stream)
{
    const struct yuv *yuv = &item->op->yuv;
    struct image dst;
    op_lay_out(item->op, &dst, item->dst);
    if (yuv->warps)
        return launch_resized(item, &dst, stream);
    const int width = BLOCK_WIDTH * TILE, rows = item->band.y1 - item->band.y0;
    const int height = BLOCK_HEIGHT * (format_is_420(yuv->format) ? 2 : 1);
    const dim3 block(BLOCK_WIDTH, BLOCK_HEIGHT);
    const dim3 grid((yuv->width + width - 1) / width, (rows + height - 1) / height);
    bool wide = source_is_wide(&item->src, yuv->source) && result_is_wide(&dst, yuv->format) &&
                (source_is_rgb(yuv->source) || sums_are_exact(&yuv->rgb));
    void *arguments[] = {&dst, (void *)&item->src, (void *)yuv, (void *)&item->band, &wide};
    return cudaLaunchKernel(kernel_of(yuv), grid, block, arguments, 0, stream);
}

static cudaError_t yuv_launch(const struct cuda_item items[], int n, cudaStream_t stream)
{
    for (int i = 0; i < n; i++)
        CUDA_TRY(launch_item(&items[i], stream));
    return cudaSuccess;
}

static size_t yuv_block_bytes(const struct op *op)
{
    size_t bytes = 0;
    for (int i = 0; i < op->yuv.n_warps; i++)
        bytes += warp_block_bytes(&op->yuv.warps[i]);
    return bytes;
}

static size_t yuv_block_room(const struct op *op)
{
    size_t bytes = 0;
    for (int i = 0; i < op->yuv.n_warps; i++)
        bytes += warp_block_room(&op->yuv.warps[i]);
    return bytes;
}

static void yuv_block_pack(const struct op *op, uint8_t *host, uint8_t *device,
                           const struct lut *lut)
{
    size_t at = 0;
    for (int i = 0; i < op->yuv.n_warps; i++) {
        warp_block_pack(&op->yuv.warps[i], host + at, device + at, lut);
        at += warp_block_bytes(&op->yuv.warps[i]);
    }
}

static cudaError_t yuv_load(const struct op *op)
{
    struct cudaFuncAttributes attributes;
    if (op->yuv.warps && !op->yuv.convert)
        return warps_load(&op->yuv.warps[0], true);
    if (op->yuv.warps && op->yuv.warps[0].lut)
        CUDA_TRY(cudaFuncGetAttributes(&attributes, looked_up_kernel_of(&op->yuv)));
    if (op->yuv.warps)
        return cudaFuncGetAttributes(&attributes, resized_kernel_of(&op->yuv));
    return cudaFuncGetAttributes(&attributes, kernel_of(&op->yuv));
}

const struct cuda_op yuv_cuda = {
    .block_bytes = yuv_block_bytes,
    .block_pack = yuv_block_pack,
    .block_room = yuv_block_room,
    .load = yuv_load,
    .launch = yuv_launch,
};
