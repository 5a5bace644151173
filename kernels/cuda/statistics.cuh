// The kernel of statistics. A block has a row of cells, and its threads have columns of 16 pixels
// and a share of the rows. All that it adds up is whole, so that the order means nothing: threads
// add in registers, warps by shuffles, blocks in shared memory, and a picture's blocks by atomics.
#ifndef FRAMED_KERNELS_CUDA_STATISTICS_CUH
#define FRAMED_KERNELS_CUDA_STATISTICS_CUH

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

// The columns behind the body.
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
        sums->sum += level;
        if (ALL) {
            const int n = pixel_load<ROWS>(item, x - 1, y) + pixel_load<ROWS>(item, x + 1, y) +
                          pixel_load<ROWS>(item, x, y - 1) + pixel_load<ROWS>(item, x, y + 1);
            atomicAdd(&histogram[place->copy * STATISTICS_LEVELS + level], 1u);
            sums->laplacian += abs(4 * level - n);
        } else {
            sums->squares += (unsigned)(level * level);
            sums->low = max(sums->low, 255 - (unsigned)level);
            sums->high = max(sums->high, (unsigned)level);
        }
    }
}

// --- of a block

// Adds the sums of a block's threads, of warp after warp, to shared memory.
static __device__ inline void sums_add(struct statistics_totals *block,
                                       const struct statistics_sums *sums)
{
    const uint64_t above = 1u << 30; // more than any thread's Laplacian is below 0
    const uint64_t sum = warp_sum_wide(sums->sum), squares = warp_sum_wide(sums->squares);
    const uint64_t laplacian = warp_sum_wide(sums->laplacian + above) - LANES * above;
    const unsigned low = warp_max(sums->low), high = warp_max(sums->high);
    if (threadIdx.x % LANES == 0) {
        atomicAdd((unsigned long long *)&block->sum, (unsigned long long)sum);
        atomicAdd((unsigned long long *)&block->squares, (unsigned long long)squares);
        atomicAdd((unsigned long long *)&block->laplacian, (unsigned long long)laplacian);
        atomicMax(&block->low, low);
        atomicMax(&block->high, high);
    }
}

// What follows from how often each level was counted.
static __device__ inline void levels_add(struct statistics_totals *block,
                                         const struct statistics_item *item,
                                         const unsigned *histogram)
{
    const int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    uint64_t squares = 0;
    unsigned black = 0, white = 0, low = 0, high = 0;
    for (int level = thread; level < STATISTICS_LEVELS; level += threads) {
        unsigned count = 0;
#pragma unroll
        for (int i = 0; i < STATISTICS_COPIES; i++)
            count += histogram[i * STATISTICS_LEVELS + level];
        squares += (uint64_t)count * (unsigned)(level * level);
        black += level <= item->black ? count : 0;
        white += level >= item->white ? count : 0;
        low = max(low, count ? 255u - level : 0);
        high = max(high, count ? (unsigned)level : 0);
        count += __shfl_xor_sync(~0u, count, 1);
        count += __shfl_xor_sync(~0u, count, 2);
        if (level % 4 == 0)
            block->histogram[level / 4] = count;
    }
    squares = warp_sum_wide(squares);
    black = warp_sum(black);
    white = warp_sum(white);
    low = warp_max(low);
    high = warp_max(high);
    if (threadIdx.x % LANES == 0) {
        atomicAdd((unsigned long long *)&block->squares, (unsigned long long)squares);
        atomicAdd(&block->black, black);
        atomicAdd(&block->white, white);
        atomicMax(&block->low, low);
        atomicMax(&block->high, high);
    }
}

// --- of a picture

// Adds a block's to the picture's. True: of the last block.
static __device__ inline bool totals_add(struct statistics_totals *totals,
                                         const struct statistics_totals *block, int blocks,
                                         bool all)
{
    __shared__ bool last;
    const int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    for (int i = thread; all && i < STATISTICS_BINS; i += threads)
        if (block->histogram[i])
            atomicAdd(&totals->histogram[i], block->histogram[i]);
    if (thread < 3)
        atomicAdd((unsigned long long *)&totals->sum + thread,
                  (unsigned long long)(&block->sum)[thread]);
    else if (thread < 5 && all)
        atomicAdd(&totals->black + thread - 3, (&block->black)[thread - 3]);
    else if (thread >= 5 && thread < 7)
        atomicMax(&totals->low + thread - 5, (&block->low)[thread - 5]);
    __threadfence();
    __syncthreads();
    if (thread == 0)
        last = atomicAdd(&totals->done, 1u) == (unsigned)blocks - 1;
    __syncthreads();
    __threadfence();
    return last;
}

static __device__ inline void result_write(const struct statistics_item *item)
{
    __shared__ struct luma_statistics result;
    struct statistics_totals *totals = item->totals;
    const int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    for (int i = thread; i < STATISTICS_BINS; i += threads)
        result.histogram[i] = __ldcg(&totals->histogram[i]);
    if (thread == 0) {
        result.sum = __ldcg((unsigned long long *)&totals->sum);
        result.squares = __ldcg((unsigned long long *)&totals->squares);
        result.laplacian = __ldcg((unsigned long long *)&totals->laplacian);
        result.pixels = (uint32_t)item->width * item->height;
        result.black = __ldcg(&totals->black);
        result.white = __ldcg(&totals->white);
        // With the bytes behind them, which are 0.
        *(uint32_t *)&result.min = 255 - __ldcg(&totals->low) + (__ldcg(&totals->high) << 8);
    }
    __syncthreads();
    for (int i = thread; i < (int)(sizeof result / sizeof(uint32_t)); i += threads)
        ((uint32_t *)item->ret)[i] = ((const uint32_t *)&result)[i];
    for (int i = thread; i < (int)(sizeof *totals / sizeof(uint32_t)); i += threads)
        ((uint32_t *)totals)[i] = 0;
}

// A block has row blockIdx.x of the cells of picture blockIdx.y.
template <int ROWS, bool ALL>
static __global__ void __launch_bounds__(STATISTICS_THREADS_MAX)
    statistics_kernel(const __grid_constant__ struct statistics_batch batch)
{
    __shared__ unsigned histogram[ALL ? STATISTICS_COPIES * STATISTICS_LEVELS : 1];
    __shared__ unsigned cells[STATISTICS_CELLS_MAX];
    __shared__ struct statistics_totals block;
    const struct statistics_item *item = &batch.item[blockIdx.y];
    const int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    if (blockIdx.x >= item->rows)
        return;
    struct statistics_place place;
    struct statistics_sums sums = {0, 0, 0, 0, 0};
    place.top = (int)cells_edge(blockIdx.x, item->rows, item->height);
    place.bottom = (int)cells_edge(blockIdx.x + 1, item->rows, item->height);
    const int rows = place.bottom - place.top, share = (rows + blockDim.y - 1) / blockDim.y;
    place.y0 = place.top + share * threadIdx.y;
    place.y1 = min(place.y0 + share, place.bottom);
    place.copy = thread / LANES % STATISTICS_COPIES;
    for (int i = thread; ALL && i < STATISTICS_COPIES * STATISTICS_LEVELS; i += threads)
        histogram[i] = 0;
    for (int i = thread; i < item->columns; i += threads)
        cells[i] = 0;
    for (int i = thread; i < (int)(sizeof block / sizeof(uint32_t)); i += threads)
        ((uint32_t *)&block)[i] = 0;
    __syncthreads();

    if constexpr (ROWS != ROWS_ANY)
        body<ROWS, ALL>(item, &place, &sums, histogram, cells);
    rest<ROWS, ALL>(item, &place, &sums, histogram, cells);

    sums_add(&block, &sums);
    __syncthreads();
    if (ALL)
        levels_add(&block, item, histogram);
    for (int i = thread; i < item->columns; i += threads)
        item->cells[(size_t)blockIdx.x * item->columns + i] = cells[i];
    __syncthreads();
    if (totals_add(item->totals, &block, item->rows, ALL))
        result_write(item);
}

#endif
