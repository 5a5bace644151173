// The warp on CUDA. Where the axes do not mix, warp_axis.cuh makes it from tables; else a thread
// makes one output pixel with the functions of sample.h.
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/warp_axis.cuh"

enum { BLOCK_WIDTH = 32, BLOCK_HEIGHT = 8 };

// --- any map

struct pixel_item {
    struct plane src[PLANES_MAX];
    uint8_t *dst;
    const struct warp *warp; // device memory
    struct band band;
};

struct pixel_batch {
    struct pixel_item item[CUDA_ITEMS_MAX];
};

// T has the size of the tensor's element; its values come out of the op's table ready made.
template <enum pixel_format FORMAT, typename T>
static __global__ void warp_pixel(const __grid_constant__ struct pixel_batch batch)
{
    const struct pixel_item *item = &batch.item[blockIdx.z];
    const struct warp *__restrict__ warp = item->warp;
    const int x = blockIdx.x * BLOCK_WIDTH + threadIdx.x;
    const int y = item->band.y0 + blockIdx.y * BLOCK_HEIGHT + threadIdx.y;
    if (x >= warp->width || y >= item->band.y1)
        return;

    struct image src;
    for (int i = 0; i < PLANES_MAX; i++)
        src.plane[i] = item->src[i];
    uint8_t level[3];
    warp_levels(&src, warp, FORMAT, warp->colx[x] + warp->rowx[y], warp->coly[x] + warp->rowy[y],
                level);

    const T *table = (const T *)&warp->table;
    const bool planar = warp->layout == LAYOUT_NCHW;
    const size_t pixel = (size_t)y * warp->width + x, plane = (size_t)warp->width * warp->height;
    T *dst = (T *)item->dst + (planar ? pixel : pixel * warp->channels);
#pragma unroll
    for (int c = 0; c < 3; c++)
        if (c < warp->channels)
            dst[planar ? c * plane : c] = table[256 * c + level[c]];
}

// --- launch

static size_t element_size(enum dtype dtype)
{
    return dtype == DTYPE_F32 ? 4 : dtype == DTYPE_F16 ? 2 : 1;
}

// The kernel loads samples of several bytes as one.
static bool plane_fits(const struct cuda_item *item, int plane, int step)
{
    const int word = step % 2 ? 1 : step;
    return item->src.plane[plane].stride == (int32_t)item->src.plane[plane].stride &&
           item->src.plane[plane].stride % word == 0 &&
           (uintptr_t)item->src.plane[plane].data % word == 0;
}

static bool source_fits(const struct cuda_item *item)
{
    for (int c = 0; c < 3; c++) {
        const struct component k = component_of(item->op->warp.source, c);
        if (!plane_fits(item, k.plane, k.step))
            return false;
    }
    return true;
}

static bool levels_are_elements(const struct warp *warp)
{
    uint8_t different = warp->dtype != DTYPE_U8;
    for (int c = 0; c < warp->channels; c++)
        for (int i = 0; i < 256; i++)
            different |= warp->table.u8[c][i] ^ i;
    return !different;
}

static uint8_t flags_of(const struct cuda_item *item)
{
    const struct warp *warp = &item->op->warp;
    const size_t run = AXIS_COLUMNS * element_size(warp->dtype);
    const bool gray = warp->order == ORDER_GRAY;
    const bool wide = warp->width % AXIS_COLUMNS == 0 && (uintptr_t)item->dst % run == 0;
    return (gray ? AXIS_GRAY : 0) | (warp->order == ORDER_BGR ? AXIS_BGR : 0) |
           (warp->layout == LAYOUT_NHWC && !gray ? AXIS_PACKED : 0) | (wide ? AXIS_WIDE : 0) |
           (levels_are_elements(warp) ? 0 : AXIS_LOOKUP);
}

// Which side of the window an output row lies on: its coverage is 0 there. Monotone along rows.
static int side_of(const struct warp *warp, int y)
{
    const int32_t p = position_of(warp->luma, warp->rowy[y]);
    return p <= (warp->y0 - 1) * WEIGHT_ONE ? -1 : p >= warp->y1 * WEIGHT_ONE;
}

// The first row of [y, y1) on another side than `side`, or y1.
static int side_end(const struct warp *warp, int side, int y, int y1)
{
    while (y < y1) {
        const int middle = (y + y1) / 2;
        if (side_of(warp, middle) == side)
            y = middle + 1;
        else
            y1 = middle;
    }
    return y;
}

// The rows of a band that the picture reaches; none: both the band's end.
static struct band picture_rows(const struct warp *warp, struct band band)
{
    const int side = side_of(warp, band.y0);
    const int top = side ? side_end(warp, side, band.y0, band.y1) : band.y0;
    const struct band rows = {top, side_end(warp, 0, top, band.y1)};
    return rows.y0 < rows.y1 ? rows : (struct band){band.y1, band.y1};
}

// Whether positions are all whole samples. Tables are rounded lines: where both ends are whole
// and the step too, no position is further off than position_of rounds away.
static bool whole_steps(const int32_t *table, int n)
{
    const int64_t length = (int64_t)table[n - 1] - table[0];
    return table[0] % 65536 == 0 && (n == 1 || length % ((n - 1) * (int64_t)65536) == 0);
}

static bool whole(const struct warp *warp)
{
    return whole_steps(warp->colx, warp->width) && whole_steps(warp->rowy, warp->height);
}

static uint32_t fill_element(const struct warp *warp, int c)
{
    const int level = warp->fill[c];
    uint32_t f32;
    memcpy(&f32, &warp->table.f32[c][level], sizeof f32);
    switch (element_size(warp->dtype)) {
    case 1:
        return warp->table.u8[c][level];
    case 2:
        return warp->table.f16[c][level];
    default:
        return f32;
    }
}

static struct axis_item axis_item_of(const struct cuda_item *item)
{
    const struct warp *warp = &item->op->warp;
    const struct yuv_to_rgb *c = &warp->rgb;
    const void *block = item->block;
    struct axis_item a = {};
    for (int i = 0; i < PLANES_MAX; i++) {
        a.plane[i] = item->src.plane[i].data;
        a.stride[i] = (int32_t)item->src.plane[i].stride;
        a.gray[i] = warp->gray[i];
        a.fill[i] = warp->fill[i];
    }
    for (int c = 0; c < warp->channels; c++)
        a.element[c] = fill_element(warp, c);
    a.dst = (uint8_t *)item->dst;
    a.table = (const uint8_t *)block + offsetof(struct warp, table);
    a.rows = warp_block_rows(warp, block);
    const struct band picture = picture_rows(warp, item->band);
    a.y0 = item->band.y0;
    a.top = picture.y0;
    a.bottom = picture.y1;
    a.y1 = item->band.y1;
    a.width = (uint16_t)warp->width;
    a.height = (uint16_t)warp->height;
    // RGB: the rounding of vertical, channel6's offset, and its rounding and level_of's; YUV:
    // luma6's
    a.round =
        source_is_rgb(warp->source) ? 8192 + (16384 << 14) + (65 << 14) : c->offset * 32768 + 16384;
    a.blue = c->bu + 32768;
    a.luma = c->y;
    a.rv = c->rv;
    a.gu = c->gu;
    a.gv = c->gv;
    a.flags = flags_of(item);
    return a;
}

// The kernels of a source and dtype.
struct kernels {
    const void *pixel, *axis, *whole;
};

template <typename T> static struct kernels kernels_for(enum pixel_format source)
{
    switch (source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        return {(const void *)warp_pixel<format, T>, (const void *)warp_axis<format, T, false>,    \
                (const void *)warp_axis<format, T, true>};
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        return {NULL, NULL, NULL};
    }
}

static struct kernels kernels_of(const struct warp *warp)
{
    switch (element_size(warp->dtype)) {
    case 1:
        return kernels_for<uint8_t>(warp->source);
    case 2:
        return kernels_for<uint16_t>(warp->source);
    default:
        return kernels_for<uint32_t>(warp->source);
    }
}

// What the items of one launch span.
struct extent {
    int n, width, height; // of axis items: the picture's
    size_t bars;          // bytes
};

static void extent_add(struct extent *extent, int width, int height, size_t bars)
{
    extent->n++;
    extent->width = width > extent->width ? width : extent->width;
    extent->height = height > extent->height ? height : extent->height;
    extent->bars = bars > extent->bars ? bars : extent->bars;
}

static unsigned blocks(int length, int block)
{
    return (unsigned)((length + block - 1) / block);
}

static cudaError_t launch_pixel(const void *kernel, struct pixel_batch *batch, struct extent extent,
                                cudaStream_t stream)
{
    const dim3 grid(blocks(extent.width, BLOCK_WIDTH), blocks(extent.height, BLOCK_HEIGHT),
                    extent.n);
    void *arguments[] = {batch};
    return cudaLaunchKernel(kernel, grid, dim3(BLOCK_WIDTH, BLOCK_HEIGHT), arguments, 0, stream);
}

enum {
    AXIS_ROWS = 2,   // that a thread makes of each of many items
    BAR_BYTES = 256, // that a thread stores
};

// Few items need all the threads they can make; with many, a thread's start is paid for by more
// rows.
static cudaError_t launch_axis(const void *kernel, struct axis_batch *batch, struct extent extent,
                               cudaStream_t stream)
{
    int rows = extent.n > 4 ? AXIS_ROWS : 1;
    const unsigned x = blocks(extent.width, AXIS_SPAN);
    const unsigned bars = (unsigned)((extent.bars + BAR_BYTES - 1) / BAR_BYTES);
    unsigned y = blocks(extent.height, AXIS_WARPS * rows);
    const dim3 grid(x, y + (bars + x * AXIS_THREADS - 1) / (x * AXIS_THREADS), extent.n);
    void *arguments[] = {batch, &rows, &y};
    return cudaLaunchKernel(kernel, grid, dim3(AXIS_LANES, AXIS_WARPS), arguments, 0, stream);
}

// The items of one call, by kernel.
struct launches {
    struct pixel_batch pixel;
    struct axis_batch axis[2]; // [1]: whole
    struct extent pixels, axes[2];
};

static void add_pixel(struct launches *to, const struct cuda_item *item)
{
    struct pixel_item *p = &to->pixel.item[to->pixels.n];
    memcpy(p->src, item->src.plane, sizeof p->src);
    p->dst = (uint8_t *)item->dst;
    p->warp = (const struct warp *)item->block;
    p->band = item->band;
    extent_add(&to->pixels, item->op->warp.width, item->band.y1 - item->band.y0, 0);
}

static void add_axis(struct launches *to, const struct cuda_item *item)
{
    const struct warp *warp = &item->op->warp;
    const int i = whole(warp);
    struct axis_item *a = &to->axis[i].item[to->axes[i].n];
    *a = axis_item_of(item);
    const int picture = a->bottom - a->top, bars = a->y1 - a->y0 - picture;
    extent_add(&to->axes[i], warp->width, picture,
               (size_t)bars * warp->width * warp->channels * element_size(warp->dtype));
}

// One launch where one kernel can make all items, at most three.
static cudaError_t warp_launch(const struct cuda_item items[], int n, cudaStream_t stream)
{
    struct launches to;
    to.pixels = to.axes[0] = to.axes[1] = {0, 0, 0, 0};
    for (int i = 0; i < n; i++) {
        if (warp_has_axes(&items[i].op->warp) && source_fits(&items[i]))
            add_axis(&to, &items[i]);
        else
            add_pixel(&to, &items[i]);
    }
    const struct kernels kernels = kernels_of(&items[0].op->warp);
    if (to.axes[0].n)
        CUDA_TRY(launch_axis(kernels.axis, &to.axis[0], to.axes[0], stream));
    if (to.axes[1].n)
        CUDA_TRY(launch_axis(kernels.whole, &to.axis[1], to.axes[1], stream));
    if (to.pixels.n)
        CUDA_TRY(launch_pixel(kernels.pixel, &to.pixel, to.pixels, stream));
    return cudaSuccess;
}

static cudaError_t warp_load(const struct op *op)
{
    const struct kernels kernels = kernels_of(&op->warp);
    struct cudaFuncAttributes attributes;
    CUDA_TRY(cudaFuncGetAttributes(&attributes, kernels.pixel));
    CUDA_TRY(cudaFuncGetAttributes(&attributes, kernels.whole));
    return cudaFuncGetAttributes(&attributes, kernels.axis);
}

const struct cuda_op warp_cuda = {
    .block_bytes = warp_block_bytes,
    .block_pack = warp_block_pack,
    .load = warp_load,
    .launch = warp_launch,
};
