// The kernel of statistics. A block has a row of cells; its threads have columns of 16 pixels and a
// share of the rows. All sums are integers, so their order does not matter: threads add in
// registers, warps by shuffles, blocks in shared memory, and a picture's blocks by atomics.
#ifndef FRAMED_KERNELS_CUDA_STATISTICS_CUH
#define FRAMED_KERNELS_CUDA_STATISTICS_CUH

#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/statistics_columns.cuh"

// --- pixel by pixel

template <int ROWS>
static __device__ inline int pixel_load(const struct statistics_item *item, int x, int y)
{
    const enum pixel_format format = (enum pixel_format)item->format;
    x = reflected(x, item->width);
    y = reflected(y, item->height);
    if constexpr (ROWS == ROWS_ANY) {
        struct image src;
        for (int p = 0; p < PLANES_MAX; p++)
            src.plane[p] = {item->data[p], item->stride[p]};
        return luma_at(&src, format, item->gray, x, y);
    }
    const uint8_t *row = item->data[0] + (ptrdiff_t)y * item->stride[0];
    return ROWS == ROWS_BYTES ? row[x] : sample_load(format, row + 2 * x) >> 2;
}

// Adds the columns after the body.
template <int ROWS, bool ALL>
static __device__ inline void
rest(const struct statistics_item *item, const struct statistics_place *place,
     struct statistics_sums *sums, unsigned *histogram, unsigned *cells)
{
    const int columns = item->width - item->body;
    const int pixels = columns * (place->bottom - place->top);
    const int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    for (int i = thread; i < pixels; i += threads) {
        const int x = item->body + i % columns, y = place->top + i / columns;
        const int level = pixel_load<ROWS>(item, x, y);
        atomicAdd(&cells[cell_of(x, item->columns, item->width)], (unsigned)level);
        sums->sum[SUM_LEVELS] += level;
        if (ALL) {
            const int n = pixel_load<ROWS>(item, x - 1, y) + pixel_load<ROWS>(item, x + 1, y) +
                          pixel_load<ROWS>(item, x, y - 1) + pixel_load<ROWS>(item, x, y + 1);
            atomicAdd(&histogram[place->copy * STATISTICS_LEVELS + level], 1u);
            sums->sum[SUM_LAPLACIAN] += abs(4 * level - n);
        } else {
            sums->sum[SUM_SQUARES] += level * level;
            sums->extreme[EXTREME_LOW] = max(sums->extreme[EXTREME_LOW], 255 - (unsigned)level);
            sums->extreme[EXTREME_HIGH] = max(sums->extreme[EXTREME_HIGH], (unsigned)level);
        }
    }
}

// --- of a block

static __device__ inline int thread_number()
{
    return threadIdx.y * blockDim.x + threadIdx.x;
}

static __device__ inline int threads_number()
{
    return blockDim.x * blockDim.y;
}

// Adds the numbers that follow from the counts of levels to the thread's sums, and the counts to
// the picture's histogram.
static __device__ inline void levels_add(const struct statistics_item *item,
                                         const unsigned *histogram, struct statistics_sums *sums)
{
#pragma unroll 1
    for (int level = thread_number(); level < STATISTICS_LEVELS; level += threads_number()) {
        unsigned count = 0;
#pragma unroll
        for (int i = 0; i < STATISTICS_COPIES; i++)
            count += histogram[i * STATISTICS_LEVELS + level];
        sums->sum[SUM_SQUARES] += (uint64_t)count * (unsigned)(level * level);
        sums->sum[SUM_BLACK] += level <= item->black ? count : 0;
        sums->sum[SUM_WHITE] += level >= item->white ? count : 0;
        if (count) {
            unsigned *extreme = sums->extreme;
            extreme[EXTREME_LOW] = max(extreme[EXTREME_LOW], 255 - (unsigned)level);
            extreme[EXTREME_HIGH] = max(extreme[EXTREME_HIGH], (unsigned)level);
        }
        count += __shfl_xor_sync(~0u, count, 1);
        count += __shfl_xor_sync(~0u, count, 2);
        if (level % 4 == 0 && count)
            atomicAdd(&item->totals->histogram[level / 4], count);
    }
}

// Adds the threads' sums to the picture's; each of `sums` is between -2^47 and 2^47.
static __device__ inline void sums_add(struct statistics_totals *totals,
                                       const struct statistics_sums *sums)
{
    enum { WARPS = STATISTICS_THREADS_MAX / LANES };
    __shared__ uint64_t sum[SUMS][WARPS];
    __shared__ unsigned extreme[EXTREMES][WARPS];
    const int thread = thread_number(), warp = thread / LANES, warps = threads_number() / LANES;
    const uint64_t above = UINT64_C(1) << 47;
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        const uint64_t all = warp_sum_wide(sums->sum[i] + above) - LANES * above;
        if (thread % LANES == 0)
            sum[i][warp] = all;
    }
#pragma unroll
    for (int i = 0; i < EXTREMES; i++) {
        const unsigned most = warp_max(sums->extreme[i]);
        if (thread % LANES == 0)
            extreme[i][warp] = most;
    }
    __syncthreads();
    if (thread < SUMS) {
        uint64_t all = 0;
        for (int i = 0; i < warps; i++)
            all += sum[thread][i];
        if (all)
            atomicAdd((unsigned long long *)&totals->sum[thread], (unsigned long long)all);
    } else if (thread < SUMS + EXTREMES) {
        unsigned most = 0;
        for (int i = 0; i < warps; i++)
            most = max(most, extreme[thread - SUMS][i]);
        atomicMax(&totals->extreme[thread - SUMS], most);
    }
}

// --- of a picture

// Returns true if all other blocks of the picture have added their sums.
static __device__ inline bool block_is_last(struct statistics_totals *totals, int blocks)
{
    __shared__ bool last;
    __syncthreads();
    if (thread_number() == 0)
        last = atomic_add_ordered(&totals->done, 1u) == (unsigned)blocks - 1;
    __syncthreads();
    return last;
}

static __device__ inline void result_write(const struct statistics_item *item)
{
    __shared__ struct luma_statistics result;
    struct statistics_totals *totals = item->totals;
    const int thread = thread_number(), threads = threads_number();
#pragma unroll 1
    for (int i = thread; i < STATISTICS_BINS; i += threads)
        result.histogram[i] = __ldcg(&totals->histogram[i]);
    if (thread == 0) {
        const unsigned long long *sum = (const unsigned long long *)totals->sum;
        result.sum = __ldcg(&sum[SUM_LEVELS]);
        result.squares = __ldcg(&sum[SUM_SQUARES]);
        result.laplacian = __ldcg(&sum[SUM_LAPLACIAN]);
        result.pixels = (uint32_t)item->width * item->height;
        result.black = (uint32_t)__ldcg(&sum[SUM_BLACK]);
        result.white = (uint32_t)__ldcg(&sum[SUM_WHITE]);
        // Includes the bytes after them, which are 0.
        *(uint32_t *)&result.min = 255 - __ldcg(&totals->extreme[EXTREME_LOW]) +
                                   (__ldcg(&totals->extreme[EXTREME_HIGH]) << 8);
    }
    __syncthreads();
#pragma unroll 1
    for (int i = thread; i < (int)(sizeof result / sizeof(uint32_t)); i += threads)
        ((uint32_t *)item->ret)[i] = ((const uint32_t *)&result)[i];
#pragma unroll 1
    for (int i = thread; i < (int)(sizeof *totals / sizeof(uint32_t)); i += threads)
        ((uint32_t *)totals)[i] = 0;
}

// Writes a row's cells, and clears them for the next row.
static __device__ inline void cells_write(const struct statistics_item *item, int row,
                                          unsigned *cells)
{
    uint32_t *to = item->cells + (size_t)row * item->columns;
    __syncthreads();
#pragma unroll 1
    for (int i = thread_number(); i < item->columns; i += threads_number()) {
        to[i] = cells[i];
        cells[i] = 0;
    }
    __syncthreads();
}

static __device__ inline struct statistics_place place_of(const struct statistics_item *item,
                                                          int row)
{
    const int top = (int)cells_edge(row, item->rows, item->height);
    const int bottom = (int)cells_edge(row + 1, item->rows, item->height);
    const int share = (bottom - top + (int)blockDim.y - 1) / (int)blockDim.y;
    const int y0 = top + share * (int)threadIdx.y;
    return {top, bottom, y0, min(y0 + share, bottom), thread_number() / LANES % STATISTICS_COPIES};
}

// A block makes some rows of cells of picture blockIdx.y.
template <int ROWS, bool ALL>
static __global__ void __launch_bounds__(STATISTICS_THREADS_MAX, STATISTICS_ROOM)
    statistics_kernel(const __grid_constant__ struct statistics_batch batch)
{
    __shared__ unsigned histogram[ALL ? STATISTICS_COPIES * STATISTICS_LEVELS : 1];
    __shared__ unsigned cells[STATISTICS_CELLS_MAX];
    const struct statistics_item *item = &batch.item[blockIdx.y];
    const int first = blockIdx.x * batch.rows, end = min(first + batch.rows, (int)item->rows);
    struct statistics_sums sums = {};
    if (first >= end)
        return;
#pragma unroll 1
    for (int i = thread_number(); ALL && i < STATISTICS_COPIES * STATISTICS_LEVELS;
         i += threads_number())
        histogram[i] = 0;
#pragma unroll 1
    for (int i = thread_number(); i < item->columns; i += threads_number())
        cells[i] = 0;
    __syncthreads();
#pragma unroll 1
    for (int row = first; row < end; row++) {
        const struct statistics_place place = place_of(item, row);
        if constexpr (ROWS != ROWS_ANY)
            body<ROWS, ALL>(item, &place, &sums, histogram, cells);
        rest<ROWS, ALL>(item, &place, &sums, histogram, cells);
        cells_write(item, row, cells);
    }
    if (ALL)
        levels_add(item, histogram, &sums);
    sums_add(item->totals, &sums);
    if (block_is_last(item->totals, (item->rows + batch.rows - 1) / batch.rows))
        result_write(item);
}

#endif
