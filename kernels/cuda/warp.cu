// The warp on CUDA. If the axes do not mix, warp_axis.cuh makes it from tables, or
// warp_filtered.cuh with a filter; else each thread makes one output pixel with the functions of
// kernels/warp.h.
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/warp_axis.cuh"
#include "kernels/cuda/warp_filtered.cuh"

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

// T has the size of the tensor's element; the op's table contains the finished elements.
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
    const bool seen = pixel_levels(&src, warp, FORMAT, x, y, level);
    const T *table = (const T *)&warp->table;
    const bool planar = warp->layout == LAYOUT_NCHW;
    const size_t pixel = (size_t)y * warp->width + x, plane = (size_t)warp->width * warp->height;
    T *dst = (T *)item->dst + (planar ? pixel : pixel * warp->channels);
#pragma unroll
    for (int c = 0; c < 3; c++)
        if (c < warp->channels)
            dst[planar ? c * plane : c] =
                seen ? table[256 * c + level[c]] : (T)warp->fill_element[c];
}

// --- launch

// The kernels of a source and dtype.
struct kernels {
    const void *pixel, *axis, *whole, *filtered;
    const void *lut; // warp_axis with a LUT
};

template <typename T> static struct kernels kernels_for(enum pixel_format source)
{
    switch (source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        return {(const void *)warp_pixel<format, T>, (const void *)warp_axis<format, T, false>,    \
                (const void *)warp_axis<format, T, true>, (const void *)warp_filtered<format, T>,  \
                warp_lut_kernel(source, sizeof(T))};
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        return {NULL, NULL, NULL, NULL, NULL};
    }
}

// Returns the kernels for samples that keep their values.
static struct kernels kept_kernels_for(enum pixel_format source)
{
    struct kernels kernels = kernels_for<uint8_t>(source);
    switch (source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        kernels.axis = kernels.whole = (const void *)warp_axis<format, uint8_t, false, true>;      \
        kernels.filtered = (const void *)warp_filtered<format, uint8_t, true>;                     \
        return kernels;
        FOR_EACH_YUV_SOURCE(CASE)
#undef CASE
    default:
        return kernels;
    }
}

static struct kernels kernels_of(const struct warp *warp, bool kept)
{
    if (kept)
        return kept_kernels_for(warp->source);
    switch (element_bytes(warp->dtype)) {
    case 1:
        return kernels_for<uint8_t>(warp->source);
    case 2:
        return kernels_for<uint16_t>(warp->source);
    default:
        return kernels_for<uint32_t>(warp->source);
    }
}

// The extents of the items of one launch.
struct extent {
    int n, width, height; // number of items; their largest size, for axis items without bars
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
    AXIS_ROWS = 2,   // per thread, with many items
    FEW_ROWS = 4,    // per thread of a filter, with few items
    FEW = 4,         // at most so many items are few
    BAR_BYTES = 256, // per thread
};

// Launches a grid of `y` rows of blocks that make pictures, followed by blocks that make bars.
static cudaError_t launch_rows(const void *kernel, struct axis_batch *batch, struct extent extent,
                               unsigned x, unsigned y, int rows, dim3 block, cudaStream_t stream)
{
    const unsigned threads = x * block.x * block.y;
    const unsigned bars = (unsigned)((extent.bars + BAR_BYTES - 1) / BAR_BYTES);
    const dim3 grid(x, y + (bars + threads - 1) / threads, extent.n);
    void *arguments[] = {batch, &rows, &y};
    return cudaLaunchKernel(kernel, grid, block, arguments, 0, stream);
}

// Few items use all the threads that they can; with many, more rows per thread make up for its
// start.
static cudaError_t launch_axis(const void *kernel, struct axis_batch *batch, struct extent extent,
                               cudaStream_t stream)
{
    const int rows = extent.n > FEW ? AXIS_ROWS : 1;
    return launch_rows(kernel, batch, extent, blocks(extent.width, AXIS_SPAN),
                       blocks(extent.height, AXIS_WARPS * rows), rows, dim3(AXIS_LANES, AXIS_WARPS),
                       stream);
}

// `most`: rows that a block can make of any item.
static cudaError_t launch_filtered(const void *kernel, struct axis_batch *batch,
                                   struct extent extent, int most, cudaStream_t stream)
{
    const int rows = extent.n > FEW || most < FEW_ROWS ? most : FEW_ROWS;
    return launch_rows(kernel, batch, extent, blocks(extent.width, COLUMN_THREADS),
                       blocks(extent.height, rows), rows, dim3(COLUMN_THREADS), stream);
}

// The warps of one call, by kernel.
struct launches {
    struct pixel_batch pixel;
    struct axis_batch axis[3], filtered; // axis[1]: whole, axis[2]: with a LUT
    struct extent pixels, axes[3], filters;
    int filtered_rows;
};

static void add_pixel(struct launches *to, const struct cuda_warp *item)
{
    struct pixel_item *p = &to->pixel.item[to->pixels.n];
    memcpy(p->src, item->src.plane, sizeof p->src);
    p->dst = (uint8_t *)item->dst;
    p->warp = (const struct warp *)item->block;
    p->band = item->band;
    extent_add(&to->pixels, item->warp->width, item->band.y1 - item->band.y0, 0);
}

static void add_item(struct axis_batch *batch, struct extent *extent, const struct cuda_warp *item)
{
    const struct warp *warp = item->warp;
    struct axis_item *a = &batch->item[extent->n];
    *a = axis_item_of(warp, &item->src, item->dst, item->band);
    a->table = (const uint8_t *)item->block + offsetof(struct warp, table);
    if (!filter_weighs(warp->filter))
        a->rows = warp_block_rows(warp, item->block);
    const int picture = a->bottom - a->top, bars = a->y1 - a->y0 - picture;
    extent_add(extent, warp->width, picture,
               (size_t)bars * warp->width * warp->channels * element_bytes(warp->dtype));
}

cudaError_t warps_launch(const struct cuda_warp warps[], int n, bool kept, cudaStream_t stream)
{
    struct launches to;
    to.pixels = to.axes[0] = to.axes[1] = to.axes[2] = to.filters = {0, 0, 0, 0};
    to.filtered_rows = FILTERED_ROWS;
    for (int i = 0; i < n; i++) {
        const struct warp *warp = warps[i].warp;
        const int rows = filtered_rows(warp, &warps[i].src);
        const int which = warp->lut ? 2 : !kept && axis_is_whole(warp);
        if (axis_fits(warp, &warps[i].src))
            add_item(&to.axis[which], &to.axes[which], &warps[i]);
        else if (rows > 0)
            add_item(&to.filtered, &to.filters, &warps[i]);
        else
            add_pixel(&to, &warps[i]);
        if (rows > 0)
            to.filtered_rows = min(to.filtered_rows, rows);
    }
    const struct kernels kernels = kernels_of(warps[0].warp, kept);
    if (to.axes[0].n)
        CUDA_TRY(launch_axis(kernels.axis, &to.axis[0], to.axes[0], stream));
    if (to.axes[1].n)
        CUDA_TRY(launch_axis(kernels.whole, &to.axis[1], to.axes[1], stream));
    if (to.axes[2].n)
        CUDA_TRY(launch_axis(kernels.lut, &to.axis[2], to.axes[2], stream));
    if (to.filters.n)
        CUDA_TRY(
            launch_filtered(kernels.filtered, &to.filtered, to.filters, to.filtered_rows, stream));
    if (to.pixels.n)
        CUDA_TRY(launch_pixel(kernels.pixel, &to.pixel, to.pixels, stream));
    return cudaSuccess;
}

cudaError_t warps_load(const struct warp *warp, bool kept)
{
    const struct kernels kernels = kernels_of(warp, kept);
    struct cudaFuncAttributes attributes;
    CUDA_TRY(cudaFuncGetAttributes(&attributes, kernels.pixel));
    if (warp->lut)
        return cudaFuncGetAttributes(&attributes, kernels.lut);
    CUDA_TRY(cudaFuncGetAttributes(&attributes, kernels.filtered));
    CUDA_TRY(cudaFuncGetAttributes(&attributes, kernels.whole));
    return cudaFuncGetAttributes(&attributes, kernels.axis);
}

// --- blocks, which the host packs: the struct, followed by its tables

enum { TABLES_OFFSET = (sizeof(struct warp) + 15) & ~15 };

// Returns the offset of a filter's tables.
static size_t filter_offset(const struct warp *warp)
{
    return (TABLES_OFFSET + warp_tables_bytes(warp) + 15) & ~(size_t)15;
}

size_t warp_block_bytes(const struct warp *warp)
{
    return (filter_offset(warp) + warp->filtered.bytes + 15) & ~(size_t)15;
}

size_t warp_block_room(const struct warp *warp)
{
    const bool filtered = warp->filter != FILTER_BILINEAR;
    return (filter_offset(warp) + (filtered ? filter_tables_room(warp) : 0) + 15) & ~(size_t)15;
}

// Returns the address of a warp's table in the block that starts at `block`.
template <typename T> static T *in_block(const struct warp *warp, const void *block, const T *table)
{
    const ptrdiff_t offset = (const uint8_t *)table - (const uint8_t *)warp->colx;
    return table ? (T *)((uint8_t *)block + TABLES_OFFSET + offset) : NULL;
}

const struct warp_row *warp_block_rows(const struct warp *warp, const void *block)
{
    return in_block(warp, block, warp->rows);
}

// Returns the same for a filter's table.
template <typename T> static T *in_filter(const struct warp *warp, const void *block, T *table)
{
    const ptrdiff_t offset = (const uint8_t *)table - (const uint8_t *)warp->filtered.luma_x.spans;
    return (T *)((uint8_t *)block + filter_offset(warp) + offset);
}

static void filter_pack(const struct warp *warp, struct filter_tables *to, uint8_t *host,
                        uint8_t *device)
{
    struct filter_axis *const axes[] = {&to->luma_x, &to->luma_y, &to->chroma_x, &to->chroma_y};
    for (int i = 0; i < 4; i++) {
        axes[i]->spans = in_filter(warp, device, axes[i]->spans);
        axes[i]->weights = in_filter(warp, device, axes[i]->weights);
    }
    to->coverage_x = in_filter(warp, device, to->coverage_x);
    to->coverage_y = in_filter(warp, device, to->coverage_y);
    memcpy(host + filter_offset(warp), warp->filtered.luma_x.spans, to->bytes);
}

void warp_block_pack(const struct warp *warp, uint8_t *host, uint8_t *device, const struct lut *lut)
{
    struct warp *copy = (struct warp *)host;
    *copy = *warp;
    copy->lut = lut;
    copy->colx = in_block(warp, device, warp->colx);
    copy->coly = in_block(warp, device, warp->coly);
    copy->rowx = in_block(warp, device, warp->rowx);
    copy->rowy = in_block(warp, device, warp->rowy);
    copy->rows = in_block(warp, device, warp->rows);
    copy->luma_columns = in_block(warp, device, warp->luma_columns);
    copy->chroma_columns = in_block(warp, device, warp->chroma_columns);
    copy->coverage_columns = in_block(warp, device, warp->coverage_columns);
    memcpy(host + TABLES_OFFSET, warp->colx, warp_tables_bytes(warp));
    if (filter_weighs(warp->filter))
        filter_pack(warp, &copy->filtered, host, device);
}

// --- the op

static size_t op_block_bytes(const struct op *op)
{
    return warp_block_bytes(&op->warp);
}

static size_t op_block_room(const struct op *op)
{
    return warp_block_room(&op->warp);
}

static void op_block_pack(const struct op *op, uint8_t *host, uint8_t *device,
                          const struct lut *lut)
{
    warp_block_pack(&op->warp, host, device, lut);
}

static cudaError_t warp_load(const struct op *op)
{
    return warps_load(&op->warp, false);
}

static cudaError_t warp_launch(const struct cuda_item items[], int n, cudaStream_t stream)
{
    struct cuda_warp warps[CUDA_ITEMS_MAX];
    for (int i = 0; i < n; i++)
        warps[i] = {items[i].src, items[i].dst, items[i].block, &items[i].op->warp, items[i].band};
    return warps_launch(warps, n, false, stream);
}

const struct cuda_op warp_cuda = {
    .block_bytes = op_block_bytes,
    .block_pack = op_block_pack,
    .block_room = op_block_room,
    .load = warp_load,
    .launch = warp_launch,
};
