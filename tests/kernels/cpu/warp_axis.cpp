// The CUDA kernels of warps whose axes do not mix (kernels/cuda/warp_axis.cuh, warp_filtered.cuh)
// on the host, thread after thread, with stand-ins for what only a GPU has: one more version for
// versions.c.
#include "kernels/fixed.h"

#define __device__
#define __global__
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

struct uint3 {
    unsigned x, y, z;
};

struct uint2 {
    unsigned x, y;
};

struct __align__(16) uint4
{
    unsigned x, y, z, w;
};

static uint3 gridDim, blockIdx, threadIdx;

static uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}

static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

template <typename T> static T __ldg(const T *at)
{
    return *at;
}

static unsigned __dp2a_lo(unsigned words, unsigned bytes, unsigned sum)
{
    return sum + (words & 0xffff) * (bytes & 255) + (words >> 16) * (bytes >> 8 & 255);
}

static unsigned __dp2a_hi(unsigned words, unsigned bytes, unsigned sum)
{
    return __dp2a_lo(words, bytes >> 16, sum);
}

// Nibble i of `order` names byte i of the result: 0 to 3 of low, 4 to 7 of high.
static unsigned __byte_perm(unsigned low, unsigned high, unsigned order)
{
    const uint64_t bytes = (uint64_t)high << 32 | low;
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= (unsigned)(bytes >> 8 * (order >> 4 * i & 7) & 255) << 8 * i;
    return result;
}

static int min(int a, int b)
{
    return a < b ? a : b;
}

static int __vimin_s32_relu(int a, int b)
{
    return min(a, b) > 0 ? min(a, b) : 0;
}

static void __syncthreads()
{
}

static const uint8_t *row_start(const uint8_t *plane, int row, int stride)
{
    return plane + (ptrdiff_t)row * stride;
}

static unsigned bytes_packed(int low, int high, unsigned above)
{
    return above << 16 | clamp_to(high, 0, 255) << 8 | clamp_to(low, 0, 255);
}

#include "kernels/cuda/warp_axis.cuh"
#include "kernels/cuda/warp_filtered.cuh"
#include "kernels/warp.h"
#include "kernels/yuv_resized.h"

enum { GUARD = 64, UNTOUCHED = 0xa5 };

typedef void kernel(const struct axis_batch, int rows, unsigned bars);

template <typename T> static kernel *kernel_of(enum pixel_format source, bool whole)
{
    switch (source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        return whole ? warp_axis<format, T, true> : warp_axis<format, T, false>;
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        return NULL;
    }
}

static kernel *kept_kernel_of(enum pixel_format source)
{
    switch (source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        return warp_axis<format, uint8_t, false, true>;
        FOR_EACH_YUV_SOURCE(CASE)
#undef CASE
    default:
        return NULL;
    }
}

static unsigned blocks(int length, int block)
{
    return (unsigned)((length + block - 1) / block);
}

// Every thread of a block runs twice: the first time fills the block's table, which its threads
// share.
static void launch(kernel *kernel, const struct axis_batch &batch, int rows)
{
    const struct axis_item &item = batch.item[0];
    const unsigned bars = blocks(item.bottom - item.top, AXIS_WARPS * rows);
    gridDim = {blocks(item.width, AXIS_SPAN), bars + 1, 1};
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
            for (int time = 0; time < 2; time++)
                for (threadIdx.y = 0; threadIdx.y < AXIS_WARPS; threadIdx.y++)
                    for (threadIdx.x = 0; threadIdx.x < AXIS_LANES; threadIdx.x++)
                        kernel(batch, rows, bars);
}

// A filter's kernel; a block's threads run twice because they share its sums.
typedef void filtered_kernel(const struct filtered_batch);

template <typename T> static filtered_kernel *filtered_kernel_of(enum pixel_format source)
{
    switch (source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        return warp_filtered<format, T>;
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        return NULL;
    }
}

static void launch_filtered(filtered_kernel *kernel, const struct filtered_batch &batch)
{
    const struct filtered_item &item = batch.item[0];
    gridDim = {blocks(item.warp->width, FILTERED_RUN), blocks(item.band.y1 - item.band.y0, 1), 1};
    threadIdx.y = 0;
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
            for (int time = 0; time < 2; time++)
                for (threadIdx.x = 0; threadIdx.x < FILTERED_RUN; threadIdx.x++)
                    kernel(batch);
}

static void run_filtered(const struct warp *warp, const struct image *src, uint8_t *result,
                         struct band band)
{
    struct filtered_batch batch = {};
    struct filtered_item *item = &batch.item[0];
    memcpy(item->src, src->plane, sizeof item->src);
    item->dst = result;
    item->warp = warp;
    item->band = band;
    filtered_visible(warp, &item->left, &item->right);
    const size_t element = element_bytes(warp->dtype);
    launch_filtered(element == 1   ? filtered_kernel_of<uint8_t>(warp->source)
                    : element == 2 ? filtered_kernel_of<uint16_t>(warp->source)
                                   : filtered_kernel_of<uint32_t>(warp->source),
                    batch);
}

static void run_axis(const struct warp *warp, const struct image *src, uint8_t *result,
                     struct band band, bool kept)
{
    struct axis_batch batch = {};
    batch.item[0] = axis_item_of(warp, src, result, band);
    batch.item[0].table = &warp->table;
    batch.item[0].rows = warp->rows;
    const size_t element = element_bytes(warp->dtype);
    const bool whole = axis_is_whole(warp);
    launch(kept           ? kept_kernel_of(warp->source)
           : element == 1 ? kernel_of<uint8_t>(warp->source, whole)
           : element == 2 ? kernel_of<uint16_t>(warp->source, whole)
                          : kernel_of<uint32_t>(warp->source, whole),
           batch, 1 + band.y0 / 2 % 2);
}

// Copies the band's rows, and breaks the first byte where other rows were written.
static void copy_band(const struct image *dst, const struct image *tight, struct band band)
{
    int stray = 0;
    for (int i = 0; i < image_planes(tight); i++) {
        const size_t row = tight->plane[i].stride;
        for (int y = 0; y < tight->height; y++) {
            const uint8_t *from = tight->plane[i].data + y * row;
            if (y >= band.y0 && y < band.y1)
                memcpy(dst->plane[i].data + y * dst->plane[i].stride, from, row);
            else
                for (size_t k = 0; k < row; k++)
                    stray |= from[k] ^ UNTOUCHED;
        }
    }
    if (stray)
        dst->plane[0].data[band.y0 * dst->plane[0].stride] ^= 1;
}

// Planes one behind the other, as the kernels write them.
static size_t lay_out_tight(struct image *tight, const struct warp *warp, uint8_t *base)
{
    const bool packed = warp->layout == LAYOUT_NHWC;
    const size_t row = element_bytes(warp->dtype) * warp->width * (packed ? warp->channels : 1);
    *tight = {};
    tight->height = warp->height;
    for (int i = 0; i < (packed ? 1 : warp->channels); i++)
        tight->plane[i] = {base + i * row * warp->height, (ptrdiff_t)row};
    return element_bytes(warp->dtype) * warp->channels * (size_t)warp->width * warp->height;
}

// `kept`: a part of a result of yuv whose samples keep their values.
static void warp_on_host(const struct image *dst, const struct image *src, const struct warp *warp,
                         struct band band, bool filled, bool kept)
{
    const bool filtered = filtered_fits(warp);
    if (!filtered && !axis_fits(warp, src)) {
        warp_reference(dst, src, warp, band, filled);
        return;
    }
    struct image tight;
    const size_t bytes = lay_out_tight(&tight, warp, NULL) + 2 * GUARD;
    uint8_t *memory = (uint8_t *)aligned_alloc(64, (bytes + 63) & ~63);
    memset(memory, UNTOUCHED, bytes);
    lay_out_tight(&tight, warp, memory + GUARD);
    if (filtered)
        run_filtered(warp, src, memory + GUARD, band);
    else
        run_axis(warp, src, memory + GUARD, band, kept);
    copy_band(dst, &tight, band);
    free(memory);
}

extern "C" void warp_axis_on_host(const struct image *dst, const struct image *src,
                                  const struct op *op, struct band band, bool filled)
{
    warp_on_host(dst, src, &op->warp, band, filled, false);
}

extern "C" void yuv_axis_on_host(const struct image *dst, const struct image *src,
                                 const struct op *op, struct band band, bool filled)
{
    struct yuv_part parts[YUV_WARPS_MAX];
    if (!op->yuv.warps || op->yuv.convert) {
        op_reference(dst, src, op, band, filled);
        return;
    }
    const int n = yuv_parts(parts, &op->yuv, dst, band);
    for (int i = 0; i < n; i++)
        warp_on_host(&parts[i].dst, src, parts[i].warp, parts[i].band, filled, true);
}
