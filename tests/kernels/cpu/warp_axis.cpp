// The CUDA kernels of warps whose axes do not mix (kernels/cuda/warp_axis.cuh, warp_filtered.cuh)
// on the host, one thread after another, with stand-ins for GPU-only features: one more version for
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

struct __align__(16) int4
{
    int x, y, z, w;
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

static int __dp2a_lo(int words, int bytes, int sum)
{
    return sum + (int16_t)words * (int8_t)bytes + (words >> 16) * (int8_t)(bytes >> 8);
}

static int __dp2a_hi(int words, int bytes, int sum)
{
    return __dp2a_lo(words, bytes >> 16, sum);
}

// Nibble i of `order` selects byte i of the result: 0 to 3 from low, 4 to 7 from high.
static unsigned __byte_perm(unsigned low, unsigned high, unsigned order)
{
    const uint64_t bytes = (uint64_t)high << 32 | low;
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= (unsigned)(bytes >> 8 * (order >> 4 * i & 7) & 255) << 8 * i;
    return result;
}

// Operates on two 16-bit numbers.
static unsigned __vmaxu2(unsigned a, unsigned b)
{
    const unsigned low = a << 16 > b << 16 ? a & 0xffff : b & 0xffff;
    return (a >> 16 > b >> 16 ? a : b) >> 16 << 16 | low;
}

static unsigned __vminu2(unsigned a, unsigned b)
{
    return ~__vmaxu2(~a, ~b);
}

static unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}

static unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) << (shift & 31) >> 32);
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
#include "kernels/yuv.h"

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

template <typename T> static kernel *lut_kernel_of(enum pixel_format source)
{
    switch (source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        return warp_axis<format, T, false, false, true>;
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        return NULL;
    }
}

static kernel *kept_kernel_of(enum pixel_format source, bool filtered)
{
    switch (source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        return filtered ? warp_filtered<format, uint8_t, true>                                     \
                        : warp_axis<format, uint8_t, false, true>;
        FOR_EACH_YUV_SOURCE(CASE)
#undef CASE
    default:
        return NULL;
    }
}

template <typename T> static kernel *filtered_kernel_of(enum pixel_format source)
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

static unsigned blocks(int length, int block)
{
    return (unsigned)((length + block - 1) / block);
}

// Runs every thread of a block twice: the first pass fills the threads' shared memory. `columns`
// and `block_rows`: output pixels per block.
static void launch(kernel *kernel, const struct axis_batch &batch, int rows, unsigned width,
                   unsigned height, int columns, int block_rows)
{
    const struct axis_item &item = batch.item[0];
    const unsigned bars = blocks(item.bottom - item.top, block_rows);
    gridDim = {blocks(item.width, columns), bars + 1, 1};
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
            for (int time = 0; time < 2; time++)
                for (threadIdx.y = 0; threadIdx.y < height; threadIdx.y++)
                    for (threadIdx.x = 0; threadIdx.x < width; threadIdx.x++)
                        kernel(batch, rows, bars);
}

static void run_filtered(const struct warp *warp, const struct axis_batch &batch, int rows,
                         bool kept)
{
    const size_t element = element_bytes(warp->dtype);
    launch(kept           ? kept_kernel_of(warp->source, true)
           : element == 1 ? filtered_kernel_of<uint8_t>(warp->source)
           : element == 2 ? filtered_kernel_of<uint16_t>(warp->source)
                          : filtered_kernel_of<uint32_t>(warp->source),
           batch, rows, COLUMN_THREADS, 1, COLUMN_THREADS, rows);
}

static kernel *lut_kernel(const struct warp *warp)
{
    const size_t element = element_bytes(warp->dtype);
    return element == 1   ? lut_kernel_of<uint8_t>(warp->source)
           : element == 2 ? lut_kernel_of<uint16_t>(warp->source)
                          : lut_kernel_of<uint32_t>(warp->source);
}

static void run_axis(const struct warp *warp, const struct axis_batch &batch, int rows, bool kept)
{
    const size_t element = element_bytes(warp->dtype);
    const bool whole = axis_is_whole(warp);
    launch(warp->lut      ? lut_kernel(warp)
           : kept         ? kept_kernel_of(warp->source, false)
           : element == 1 ? kernel_of<uint8_t>(warp->source, whole)
           : element == 2 ? kernel_of<uint16_t>(warp->source, whole)
                          : kernel_of<uint32_t>(warp->source, whole),
           batch, rows, AXIS_LANES, AXIS_WARPS, AXIS_SPAN, AXIS_WARPS * rows);
}

// Copies the band's rows, and corrupts the first byte if other rows were written.
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

// Lays planes out consecutively, as the kernels write them.
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

// `kept`: part of a yuv result whose samples keep their values.
static void warp_on_host(const struct image *dst, const struct image *src, const struct warp *warp,
                         struct band band, bool filled, bool kept)
{
    const int filtered = filtered_rows(warp, src);
    if (filtered == 0 && !axis_fits(warp, src)) {
        warp_reference(dst, src, warp, band, filled);
        return;
    }
    struct image tight;
    const size_t bytes = lay_out_tight(&tight, warp, NULL) + 2 * GUARD;
    uint8_t *memory = (uint8_t *)aligned_alloc(64, (bytes + 63) & ~63);
    memset(memory, UNTOUCHED, bytes);
    lay_out_tight(&tight, warp, memory + GUARD);
    struct axis_batch batch = {};
    batch.item[0] = axis_item_of(warp, src, memory + GUARD, band);
    batch.item[0].table = &warp->table;
    const int some = 1 + band.y0 / 2 % 2;
    if (filtered) {
        run_filtered(warp, batch, some < filtered ? filtered - some + 1 : filtered, kept);
    } else {
        batch.item[0].rows = warp->rows;
        run_axis(warp, batch, some, kept);
    }
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
