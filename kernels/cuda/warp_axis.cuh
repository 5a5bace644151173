// Warps where the source's x depends only on the output's x, and its y only on the output's y: no
// rotation and no skew. Values that depend on one axis only (taps, weights, coverage) are made when
// the op is packed and stored in tables, so that no pixel clamps a tap.
#ifndef FRAMED_KERNELS_CUDA_WARP_AXIS_CUH
#define FRAMED_KERNELS_CUDA_WARP_AXIS_CUH

#include "kernels/cuda/lut.cuh"
#include "kernels/cuda/schedule.h"
#include "kernels/cuda/warp_item.cuh"

enum {
    AXIS_WARPS = 4,
    AXIS_LANES = 32,
    AXIS_THREADS = AXIS_LANES * AXIS_WARPS,
    AXIS_SPAN = AXIS_LANES * AXIS_COLUMNS, // pixels of a row per warp
};

struct axis_batch {
    struct axis_item item[CUDA_ITEMS_MAX];
};
static_assert(sizeof(struct axis_batch) <= 4000, "kernel parameters");

// Blocks per multiprocessor, which bounds a thread's registers. Samples of 10 bits and packed ones
// need more registers than 8 blocks leave; so do YUV samples with a LUT.
static FRAMED_HD constexpr int axis_resident(enum pixel_format format, bool whole, bool lut)
{
    const bool packed = format == PIXEL_YUYV422 || format == PIXEL_UYVY422;
    const bool more = packed || format == PIXEL_YUV420P10 || (format == PIXEL_P010 && !whole);
    return more || (lut && format > PIXEL_GBRP) ? 6 : 8;
}

// --- levels

// Neighbours that are loaded as one, at most 16 bytes.
template <typename T>
struct __align__(sizeof(T) * AXIS_COLUMNS < 16 ? sizeof(T) * AXIS_COLUMNS : 16) axis_run
{
    T element[AXIS_COLUMNS];
};

// A thread's columns.
struct axis_columns {
    struct warp_column luma[AXIS_COLUMNS], chroma[AXIS_COLUMNS];
    unsigned coverage[AXIS_COLUMNS];
    bool none, all; // of their coverage
};

// Makes one row's pixels: R, G, B, or only gray.
template <enum pixel_format FORMAT, bool WHOLE, bool LUT>
static __device__ inline void axis_pixels(const struct axis_item *item, const struct warp_row *row,
                                          const struct axis_columns *columns,
                                          int level21[3][AXIS_COLUMNS])
{
    const struct axis_lines lines =
        lines_at(item, 0, source_is_rgb(FORMAT) ? pixel_format_planes(FORMAT) : 1, row->luma,
                 row->luma_weight);
    const bool gray = !LUT && item->flags & AXIS_GRAY;
    int pixel[AXIS_COLUMNS][3];
    if (source_is_rgb(FORMAT)) {
#pragma unroll
        for (int i = 0; i < AXIS_COLUMNS; i++)
            rgb21<FORMAT, WHOLE>(item, &lines, columns->luma[i], pixel[i]);
        if (gray)
            for (int i = 0; i < AXIS_COLUMNS; i++) {
                const struct rgb6 q = {pixel[i][0] >> 15, pixel[i][1] >> 15, pixel[i][2] >> 15};
                pixel[i][0] = gray6(q, item->gray) << 15;
            }
    } else if (gray || !source_has_chroma(FORMAT)) {
#pragma unroll
        for (int i = 0; i < AXIS_COLUMNS; i++)
            pixel[i][0] = pixel[i][1] = pixel[i][2] =
                luma21<FORMAT, WHOLE>(item, &lines, columns->luma[i]);
    } else {
        const int packed = component_of(FORMAT, 1).plane == 0;
        const struct axis_lines chroma = lines_at(item, packed ? 0 : 1, pixel_format_planes(FORMAT),
                                                  row->chroma, row->chroma_weight);
#pragma unroll
        for (int i = 0; i < AXIS_COLUMNS; i++)
            yuv21<FORMAT>(item, luma21<FORMAT, WHOLE>(item, &lines, columns->luma[i]), &chroma,
                          columns->chroma[i], pixel[i]);
    }
#pragma unroll
    for (int i = 0; i < AXIS_COLUMNS; i++)
        for (int c = 0; c < 3; c++)
            level21[c][i] = pixel[i][c];
}

// Looks up the same pixels in the LUT; the result is levels.
static __device__ inline void axis_look_up(const struct axis_item *item,
                                           const struct lut_registers *lut,
                                           int value[3][AXIS_COLUMNS])
{
#pragma unroll
    for (int i = 0; i < AXIS_COLUMNS; i++)
        for (int c = 0; c < 3; c++)
            value[c][i] = __vimin_s32_relu(value[c][i] >> 21, 255);
    lut_look_up<AXIS_COLUMNS>(lut, value);
    if (!(item->flags & AXIS_GRAY))
        return;
#pragma unroll
    for (int i = 0; i < AXIS_COLUMNS; i++) {
        const struct rgb6 q = {value[0][i] * 64 + LEVEL6_HALF, value[1][i] * 64 + LEVEL6_HALF,
                               value[2][i] * 64 + LEVEL6_HALF};
        value[0][i] = level_of(gray6(q, item->gray));
    }
}

// Makes one row's samples that keep their values, in the item's channels; the others are zero.
template <enum pixel_format FORMAT>
static __device__ inline void axis_kept(const struct axis_item *item, const struct warp_row *row,
                                        const struct axis_columns *columns,
                                        int level21[3][AXIS_COLUMNS])
{
    const bool alone = item->flags & AXIS_CHROMA;
    for (int i = 0; i < AXIS_COLUMNS; i++)
        level21[0][i] = level21[1][i] = level21[2][i] = 0;
    if (!alone) {
        const struct axis_lines lines = lines_at(item, 0, 1, row->luma, row->luma_weight);
#pragma unroll
        for (int i = 0; i < AXIS_COLUMNS; i++)
            level21[0][i] = luma21<FORMAT, false>(item, &lines, columns->luma[i]);
    }
    if (item->flags & AXIS_GRAY)
        return;
    const int packed = component_of(FORMAT, 1).plane == 0;
    const struct axis_lines lines = lines_at(item, packed ? 0 : 1, pixel_format_planes(FORMAT),
                                             row->chroma, row->chroma_weight);
#pragma unroll
    for (int i = 0; i < AXIS_COLUMNS; i++) {
        int uv[2] = {item->round, item->round};
        if (source_has_chroma(FORMAT))
            chroma21<FORMAT>(item, &lines, columns->chroma[i], uv);
        level21[alone ? 0 : 1][i] = uv[0];
        level21[alone ? 1 : 2][i] = uv[1];
    }
}

// Makes the same as levels, inside and outside the picture, before they are clamped to bytes.
template <enum pixel_format FORMAT, bool WHOLE, bool KEPT, bool LUT>
static __device__ inline void
axis_levels(const struct axis_item *item, const struct lut_registers *lut,
            const struct warp_row *row, const struct axis_columns *columns,
            int level[3][AXIS_COLUMNS])
{
    const bool bgr = item->flags & AXIS_BGR;
    if (KEPT)
        axis_kept<FORMAT>(item, row, columns, level);
    else
        axis_pixels<FORMAT, WHOLE, LUT>(item, row, columns, level);
    if (LUT)
        axis_look_up(item, lut, level);
    const bool all = row->coverage == WEIGHT_ONE && columns->all;
    if (LUT && all)
        return;
    if (all) {
#pragma unroll
        for (int i = 0; i < AXIS_COLUMNS; i++)
            for (int c = 0; c < 3; c++)
                level[c][i] >>= 21;
        return;
    }
#pragma unroll
    for (int i = 0; i < AXIS_COLUMNS; i++) {
        const int coverage = coverage_of(columns->coverage[i], row->coverage);
        for (int c = 0; c < 3; c++)
            level[c][i] = level_blended(LUT ? level[c][i] * 64 + LEVEL6_HALF : level[c][i] >> 15,
                                        item->fill[bgr ? 2 - c : c], coverage);
    }
}

// --- stores

// Converts levels to elements, in place; bytes may still be unclamped.
template <typename T>
static __device__ inline void elements_of(const struct axis_item *item, const T *table,
                                          int value[3][AXIS_COLUMNS])
{
    if (sizeof(T) == 1 && !(item->flags & AXIS_LOOKUP))
        return;
    const bool bgr = item->flags & AXIS_BGR;
#pragma unroll
    for (int c = 0; c < 3; c++) {
        if (c > 0 && item->flags & AXIS_GRAY)
            break;
        for (int i = 0; i < AXIS_COLUMNS; i++)
            value[c][i] = (int)table[256 * (bgr ? 2 - c : c) + __vimin_s32_relu(value[c][i], 255)];
    }
}

// Sets the elements of columns that see nothing of the picture.
static __device__ inline void elements_fill(const struct axis_item *item,
                                            const struct axis_columns *columns,
                                            int value[3][AXIS_COLUMNS])
{
    const bool bgr = item->flags & AXIS_BGR;
#pragma unroll
    for (int i = 0; i < AXIS_COLUMNS; i++)
        for (int c = 0; c < 3; c++)
            if (columns->coverage[i] == 0)
                value[c][i] = (int)item->element[bgr ? 2 - c : c];
}

// Adjacent elements, as words because the compiler would split bytes.
template <typename T> struct axis_words {
    static constexpr int BYTES = sizeof(T) * AXIS_COLUMNS;
    uint32_t word[(BYTES + 3) / 4];
};

template <typename T>
static __device__ inline struct axis_words<T> words_of(const int value[AXIS_COLUMNS]) {
    struct axis_words<T> run = {
    };
#pragma unroll
    for (int i = AXIS_COLUMNS - 1; i >= 0; i--) {
        if (sizeof(T) == 4)
            run.word[i] = value[i];
        else if (sizeof(T) == 2)
            run.word[i / 2] |= value[i] << 16 * (i % 2);
        else if (i % 2 == 0)
            run.word[i / 4] =
                bytes_packed(value[i], i + 1 < AXIS_COLUMNS ? value[i + 1] : 0, run.word[i / 4]);
    }
    return run;
}

template <typename T>
static __device__ inline void wide_store(T *to, const struct axis_words<T> &run)
{
    const uint32_t *word = run.word;
    if (run.BYTES == 1)
        *(uint8_t *)to = (uint8_t)word[0];
    else if (run.BYTES == 2)
        *(uint16_t *)to = (uint16_t)word[0];
    else if (run.BYTES == 4)
        *(uint32_t *)to = word[0];
    else if (run.BYTES == 8)
        *(uint2 *)to = make_uint2(word[0], word[run.BYTES / 8]);
    else
        *(uint4 *)to = make_uint4(word[0], word[run.BYTES / 16], word[run.BYTES / 8],
                                  word[run.BYTES / 16 * 3]);
}

// `n`: elements from `to` to the row's end.
template <typename T>
static __device__ inline void run_store(T *to, const struct axis_words<T> &run, bool wide, int n)
{
    if (wide) {
        wide_store(to, run);
        return;
    }
    const int in_word = 4 / sizeof(T);
#pragma unroll
    for (int i = 0; i < AXIS_COLUMNS; i++)
        if (i < n)
            to[i] = (T)(run.word[i / in_word] >> 8 * sizeof(T) * (i % in_word));
}

// `to`: the run's first pixel in the first channel; `n`: pixels from there to the row's end.
template <typename T, bool KEPT>
static __device__ inline void store_planar(const struct axis_item *item, T *to, int n,
                                           const int value[3][AXIS_COLUMNS])
{
    const ptrdiff_t plane = (ptrdiff_t)item->width * item->height;
    const bool wide = item->flags & AXIS_WIDE;
#pragma unroll
    for (int c = 0; c < 3; c++) {
        if (c > 0 && item->flags & AXIS_GRAY)
            break;
        if (KEPT && c > 1 && item->flags & AXIS_CHROMA)
            break;
        run_store(to + (item->flags & AXIS_BGR ? 2 - c : c) * plane, words_of<T>(value[c]), wide,
                  n);
    }
}

template <typename T>
static __device__ inline void store_packed(const struct axis_item *item, T *to, int n,
                                           const int value[3][AXIS_COLUMNS])
{
    const bool bgr = item->flags & AXIS_BGR, wide = item->flags & AXIS_WIDE;
#pragma unroll
    for (int k = 0; k < 3; k++) {
        int run[AXIS_COLUMNS];
        for (int i = 0; i < AXIS_COLUMNS; i++) {
            const int element = k * AXIS_COLUMNS + i;
            run[i] = bgr ? value[2 - element % 3][element / 3] : value[element % 3][element / 3];
        }
        run_store(to + k * AXIS_COLUMNS, words_of<T>(run), wide, 3 * n - k * AXIS_COLUMNS);
    }
}

// Stores U and V.
template <typename T>
static __device__ inline void store_pairs(const struct axis_item *item, T *to, int n,
                                          const int value[3][AXIS_COLUMNS])
{
#pragma unroll
    for (int k = 0; k < 2; k++) {
        int run[AXIS_COLUMNS];
        for (int i = 0; i < AXIS_COLUMNS; i++) {
            const int element = k * AXIS_COLUMNS + i;
            run[i] = value[element % 2][element / 2];
        }
        run_store(to + k * AXIS_COLUMNS, words_of<T>(run), item->flags & AXIS_WIDE,
                  2 * n - k * AXIS_COLUMNS);
    }
}

// --- bars of fill above and below the picture

// Returns bytes 4 * word to 4 * word + 3 of elements that repeat every PERIOD elements.
template <typename T, int PERIOD>
static __device__ inline uint32_t pattern_word(const uint32_t element[PERIOD], int word)
{
    const int n = 4 / sizeof(T);
    uint32_t bits = 0;
#pragma unroll
    for (int i = 0; i < n; i++)
        bits |= element[(word * n + i) % PERIOD] << 8 * sizeof(T) * i;
    return bits;
}

// Stores n elements from `to` on; `thread` is one of `threads` that share the work.
template <typename T, int PERIOD>
static __device__ inline void pattern_store(T *to, size_t n, const uint32_t element[PERIOD],
                                            unsigned thread, unsigned threads)
{
    const unsigned length = 16 / sizeof(T);
    const unsigned runs = (uintptr_t)to % 16 == 0 ? (unsigned)(n / length) : 0;
    uint32_t word[PERIOD];
#pragma unroll
    for (int i = 0; i < PERIOD; i++)
        word[i] = pattern_word<T, PERIOD>(element, i);
    for (unsigned i = thread; i < runs; i += threads) {
        const unsigned phase =
            i % PERIOD; // 4 * i % PERIOD if that is 1 or 3; with 2 all words are equal
        const uint32_t a = word[0], b = word[PERIOD > 1], c = word[PERIOD - 1];
        ((uint4 *)to)[i] = phase == 0   ? make_uint4(a, b, c, a)
                           : phase == 1 ? make_uint4(b, c, a, b)
                                        : make_uint4(c, a, b, c);
    }
    for (size_t i = (size_t)runs * length + thread; i < n; i += threads)
        to[i] = (T)element[i % PERIOD];
}

// Returns the number of adjacent channels.
template <bool KEPT> static __device__ inline int axis_packed(const struct axis_item *item)
{
    const int channels = KEPT && item->flags & AXIS_CHROMA ? 2 : 3;
    return item->flags & AXIS_PACKED ? channels : 1;
}

// Fills rows [y0, y1).
template <typename T, bool KEPT>
static __device__ inline void bar_store(const struct axis_item *item, int y0, int y1,
                                        unsigned thread, unsigned threads)
{
    const size_t first = (size_t)y0 * item->width, n = (size_t)(y1 - y0) * item->width;
    T *to = (T *)item->dst;
    if (axis_packed<KEPT>(item) == 3) {
        pattern_store<T, 3>(to + 3 * first, 3 * n, item->element, thread, threads);
        return;
    }
    if (axis_packed<KEPT>(item) == 2) {
        pattern_store<T, 2>(to + 2 * first, 2 * n, item->element, thread, threads);
        return;
    }
    const int all = KEPT && item->flags & AXIS_CHROMA ? 2 : 3;
    for (int c = 0; c < (item->flags & AXIS_GRAY ? 1 : all); c++)
        pattern_store<T, 1>(to + (size_t)c * item->width * item->height + first, n,
                            item->element + c, thread, threads);
}

// --- the kernel

template <bool WHOLE>
static __device__ inline void columns_load(const struct axis_item *item, int step, int x,
                                           struct axis_columns *columns)
{
    const int padded = warp_padded_width(item->width);
    const struct warp_column *table = (const struct warp_column *)(item->rows + item->height);
    const auto luma = *(const struct axis_run<struct warp_column> *)(table + x);
    const auto chroma = *(const struct axis_run<struct warp_column> *)(table + padded + x);
    const auto coverage =
        *(const struct axis_run<uint16_t> *)((const uint16_t *)(table + 2 * padded) + x);
    unsigned any = 0, all = WEIGHT_ONE;
#pragma unroll
    for (int i = 0; i < AXIS_COLUMNS; i++) {
        columns->luma[i] = luma.element[i];
        if (WHOLE) // use the right tap if it has all the weight
            columns->luma[i].offset += luma.element[i].weights >> (16 + WEIGHT_BITS) ? step : 0;
        columns->chroma[i] = chroma.element[i];
        columns->coverage[i] = coverage.element[i];
        any |= columns->coverage[i];
        all &= columns->coverage[i]; // WEIGHT_ONE is a bit that no other coverage has
    }
    columns->none = any == 0;
    columns->all = all != 0;
}

template <typename T>
static __device__ inline void table_load(const struct axis_item *item, T table[3 * 256])
{
    const int n = item->flags & AXIS_GRAY ? 256 : 768;
    for (int i = threadIdx.y * AXIS_LANES + threadIdx.x; i < n; i += AXIS_THREADS)
        table[i] = ((const T *)item->table)[i];
    __syncthreads();
}

// Makes the pixels of four columns from x on, in rows y, y + AXIS_WARPS, ... below `end`.
template <enum pixel_format FORMAT, typename T, bool WHOLE, bool KEPT, bool LUT>
static __device__ inline void axis_rows(const struct axis_item *item, const T *table, int x, int y,
                                        int end)
{
    struct axis_columns columns;
    struct lut_registers lut = {};
    if (LUT)
        lut = lut_registers_of(item_warp(item)->lut);
    columns_load<WHOLE>(item, component_of(FORMAT, 0).step, x, &columns);
    const int packed = axis_packed<KEPT>(item);
    const ptrdiff_t pitch = packed * item->width;
    T *to = (T *)item->dst + y * pitch + packed * x;
    struct warp_row next = item->rows[y];
    for (; y < end; y += AXIS_WARPS, to += AXIS_WARPS * pitch) {
        const struct warp_row row = next;
        next = item->rows[min(y + AXIS_WARPS, end - 1)];
        int value[3][AXIS_COLUMNS] = {{0}};
        if (!columns.none) {
            axis_levels<FORMAT, WHOLE, KEPT, LUT>(item, &lut, &row, &columns, value);
            elements_of(item, table, value);
        }
        if (!columns.all)
            elements_fill(item, &columns, value);
        if (packed == 3)
            store_packed(item, to, item->width - x, value);
        else if (packed == 2)
            store_pairs(item, to, item->width - x, value);
        else
            store_planar<T, KEPT>(item, to, item->width - x, value);
    }
}

// A block makes AXIS_SPAN pixels of AXIS_WARPS * rows rows; its warps make one row each at a time.
// Blocks from blockIdx.y == bars on share the item's bars instead. WHOLE: no output pixel lies
// between luma or RGB samples. KEPT: samples keep their values; T is a byte, and WHOLE is false.
// LUT: the warp has a LUT; the item's AXIS_WHOLE then takes the place of WHOLE.
template <enum pixel_format FORMAT, typename T, bool WHOLE, bool KEPT = false, bool LUT = false>
static __global__ void __launch_bounds__(AXIS_THREADS, axis_resident(FORMAT, WHOLE, LUT))
    warp_axis(const __grid_constant__ struct axis_batch batch, int rows, unsigned bars)
{
    __shared__ T table[3 * 256];
    const struct axis_item *item = &batch.item[blockIdx.z];
    if (blockIdx.y >= bars) {
        const unsigned block = (blockIdx.y - bars) * gridDim.x + blockIdx.x;
        const unsigned thread = block * AXIS_THREADS + threadIdx.y * AXIS_LANES + threadIdx.x;
        const unsigned threads = (gridDim.y - bars) * gridDim.x * AXIS_THREADS;
        bar_store<T, KEPT>(item, item->y0, item->top, thread, threads);
        bar_store<T, KEPT>(item, item->bottom, item->y1, thread, threads);
        return;
    }
    const int x = blockIdx.x * AXIS_SPAN + threadIdx.x * AXIS_COLUMNS;
    int y = item->top + blockIdx.y * AXIS_WARPS * rows;
    const int end = min(y + AXIS_WARPS * rows, item->bottom);
    if (y >= end || blockIdx.x * AXIS_SPAN >= item->width)
        return;
    if (sizeof(T) > 1 || item->flags & AXIS_LOOKUP)
        table_load(item, table);
    y += threadIdx.y;
    if (x >= item->width || y >= end)
        return;
    if (LUT && item->flags & AXIS_WHOLE)
        axis_rows<FORMAT, T, true, KEPT, LUT>(item, table, x, y, end);
    else
        axis_rows<FORMAT, T, WHOLE, KEPT, LUT>(item, table, x, y, end);
}

#endif
