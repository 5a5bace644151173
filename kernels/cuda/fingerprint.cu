// Fingerprints on CUDA. A block takes a tile of pictures through both products with all their
// inputs in shared memory: each element of the table is read once for all pictures of the tile. For
// 165 pictures, hardly more than an H200 has multiprocessors, tiles of one are the fastest: 3.3 us
// instead of 4.0 for 2 or 4. Pairs of a table row meet the pixels in dp2a, which needs both signed:
// subtracting 128 everywhere changes nothing, since the rows sum to 0.
#include "kernels/cuda/launch.h"

enum {
    TILE = 1, // pictures per block
    THREADS = FINGERPRINT_SIDE * FINGERPRINT_FREQUENCIES,
    PAIRS = FINGERPRINT_SIDE / 2,
    WORDS = FINGERPRINT_LUMA / 4,
    PARTS = THREADS / FINGERPRINT_BITS, // threads that share a coefficient
    ROWS = FINGERPRINT_SIDE / PARTS,
    BATCH = 64,
};

// The table, in pairs.
struct fingerprint_weights {
    int32_t pair[FINGERPRINT_FREQUENCIES][PAIRS];
};

struct fingerprint_batch {
    struct fingerprint_cuda_picture picture[BATCH];
    int n;
};

struct tile {
    int32_t pair[FINGERPRINT_FREQUENCIES]
                [PAIRS + 1];    // one more, so that rows begin in different banks
    uint32_t luma[TILE][WORDS]; // minus 128
    int32_t rows[TILE][FINGERPRINT_SIDE][FINGERPRINT_FREQUENCIES]; // B
    int32_t parts[TILE][PARTS][FINGERPRINT_BITS];                  // of C, then of counts
    int32_t numbers[TILE][FINGERPRINT_BITS];                       // C
};

static __device__ inline int32_t weight_of(const struct tile *tile, int frequency, int i)
{
    return (int16_t)((uint32_t)tile->pair[frequency][i / 2] >> i % 2 * 16);
}

// Each thread makes an element of B in each picture.
static __device__ inline void rows_weigh(struct tile *tile, int thread)
{
    const int y = thread / FINGERPRINT_FREQUENCIES, v = thread % FINGERPRINT_FREQUENCIES;
    int32_t sum[TILE];
    for (int k = 0; k < TILE; k++)
        sum[k] = 1 << (FINGERPRINT_DROPPED - 1);
    for (int i = 0; i < FINGERPRINT_SIDE / 4; i++) {
        const int32_t low = tile->pair[v][2 * i], high = tile->pair[v][2 * i + 1];
        for (int k = 0; k < TILE; k++) {
            const int32_t four = (int32_t)tile->luma[k][y * (FINGERPRINT_SIDE / 4) + i];
            sum[k] = __dp2a_hi(high, four, __dp2a_lo(low, four, sum[k]));
        }
    }
    for (int k = 0; k < TILE; k++)
        tile->rows[k][y][v] = sum[k] >> FINGERPRINT_DROPPED;
}

// Each thread sums some rows for a coefficient.
static __device__ inline void columns_weigh(struct tile *tile, int i, int part)
{
    const int u = i / FINGERPRINT_FREQUENCIES, v = i % FINGERPRINT_FREQUENCIES;
    int32_t sum[TILE] = {};
    for (int y = part * ROWS; y < (part + 1) * ROWS; y++) {
        const int32_t weight = weight_of(tile, u, y);
        for (int k = 0; k < TILE; k++)
            sum[k] += weight * tile->rows[k][y][v];
    }
    for (int k = 0; k < TILE; k++)
        tile->parts[k][part][i] = sum[k];
}

// Sums the parts of coefficient or count i of picture k.
static __device__ inline int32_t parts_sum(const struct tile *tile, int k, int i)
{
    int32_t sum = 0;
    for (int part = 0; part < PARTS; part++)
        sum += tile->parts[k][part][i];
    return sum;
}

// Counts the smaller ones among a part of the coefficients.
static __device__ inline void smaller_count(struct tile *tile, int i, int part)
{
    for (int k = 0; k < TILE; k++) {
        int32_t below = 0;
        for (int j = part; j < FINGERPRINT_BITS; j += PARTS)
            below += tile->numbers[k][j] < tile->numbers[k][i];
        tile->parts[k][part][i] = below;
    }
}

// Makes fingerprints from the tile's luma and table, which the block has written. Returns true in
// the first lane of each warp that has 32 bits, the low or high half of the tile's `*ret_picture`.
static __device__ inline bool tile_fingerprint(struct tile *tile, int *ret_picture, int *ret_half,
                                               uint32_t *ret_bits)
{
    const int thread = threadIdx.x, i = thread % FINGERPRINT_BITS, part = thread / FINGERPRINT_BITS;
    __syncthreads();
    rows_weigh(tile, thread);
    __syncthreads();
    columns_weigh(tile, i, part);
    __syncthreads();
    if (part < TILE)
        tile->numbers[part][i] = parts_sum(tile, part, i);
    __syncthreads();
    smaller_count(tile, i, part);
    __syncthreads();
    if (part >= TILE)
        return false;
    *ret_bits = __ballot_sync(0xffffffff, parts_sum(tile, part, i) >= FINGERPRINT_BITS / 2);
    *ret_picture = part;
    *ret_half = i / 32;
    return i % 32 == 0;
}

static __device__ inline void weights_copy(struct tile *tile,
                                           const struct fingerprint_weights *weights)
{
    if (threadIdx.x < FINGERPRINT_FREQUENCIES * PAIRS)
        tile->pair[threadIdx.x / PAIRS][threadIdx.x % PAIRS] =
            weights->pair[threadIdx.x / PAIRS][threadIdx.x % PAIRS];
}

static __global__ void __launch_bounds__(THREADS)
    fingerprint_lumas(const uint32_t *luma, uint32_t *ret, int n,
                      const __grid_constant__ struct fingerprint_weights weights)
{
    __shared__ struct tile tile;
    const int first = blockIdx.x * TILE;
    int picture, half;
    uint32_t bits;
    weights_copy(&tile, &weights);
    for (int k = 0; k < TILE; k++)
        tile.luma[k][threadIdx.x] =
            first + k < n ? luma[(size_t)(first + k) * WORDS + threadIdx.x] ^ 0x80808080 : 0;
    if (tile_fingerprint(&tile, &picture, &half, &bits) && first + picture < n)
        ret[2 * (first + picture) + half] = bits;
}

// --- from sums of cells

static __device__ inline int share_of(const struct fingerprint_axis *axis, int i, int cell)
{
    return cell == axis->first[i]  ? axis->first_share[i]
           : cell == axis->last[i] ? axis->last_share[i]
                                   : FINGERPRINT_SIDE;
}

static __device__ inline uint8_t area_mean(const struct fingerprint_cells *cells,
                                           const uint32_t *sums, int x, int y)
{
    const uint64_t pixels = (uint64_t)cells->x.pixels[x] * cells->y.pixels[y];
    const int begin = cells->x.first[x], end = cells->x.last[x];
    uint64_t sum = 0;
    for (int j = cells->y.first[y]; j <= cells->y.last[y]; j++) {
        const uint32_t *row = sums + (size_t)j * cells->x.cells;
        uint64_t part = 0;
        for (int i = begin; i <= end; i++)
            part += (uint64_t)row[i] * share_of(&cells->x, x, i);
        sum += part * share_of(&cells->y, y, j);
    }
    return fingerprint_mean(sum, pixels, cells->reciprocal[y * FINGERPRINT_SIDE + x]);
}

static __global__ void __launch_bounds__(THREADS)
    fingerprint_sums(const __grid_constant__ struct fingerprint_batch batch,
                     const __grid_constant__ struct fingerprint_weights weights)
{
    __shared__ struct tile tile;
    const int first = blockIdx.x * TILE;
    int picture, half;
    uint32_t bits;
    weights_copy(&tile, &weights);
    for (int k = 0; k < TILE && first + k < batch.n; k++) {
        const struct fingerprint_cuda_picture *from = &batch.picture[first + k];
        uint8_t *luma = (uint8_t *)tile.luma[k];
        for (int at = threadIdx.x; at < FINGERPRINT_LUMA; at += THREADS)
            luma[at] =
                area_mean(from->cells, from->sums, at % FINGERPRINT_SIDE, at / FINGERPRINT_SIDE) ^
                0x80;
    }
    if (tile_fingerprint(&tile, &picture, &half, &bits) && first + picture < batch.n)
        ((uint32_t *)batch.picture[first + picture].ret)[half] = bits;
}

// --- launches

static struct fingerprint_weights weights_of_table(void)
{
    struct fingerprint_weights weights;
    static_assert(sizeof weights == sizeof fingerprint_table, "pairs");
    memcpy(&weights, fingerprint_table, sizeof weights);
    return weights;
}

cudaError_t fingerprint_cuda_load(void)
{
    struct cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, fingerprint_lumas);
    return error ? error : cudaFuncGetAttributes(&attributes, fingerprint_sums);
}

cudaError_t fingerprint_cuda(const uint8_t (*luma)[FINGERPRINT_LUMA], uint64_t *ret, int n,
                             cudaStream_t stream)
{
    if (n > 0)
        fingerprint_lumas<<<(n + TILE - 1) / TILE, THREADS, 0, stream>>>(
            (const uint32_t *)luma, (uint32_t *)ret, n, weights_of_table());
    return cudaGetLastError();
}

cudaError_t fingerprint_cuda_cells(const struct fingerprint_cuda_picture pictures[], int n,
                                   cudaStream_t stream)
{
    const struct fingerprint_weights weights = weights_of_table();
    cudaError_t error = cudaSuccess;
    for (int at = 0; at < n && error == cudaSuccess; at += BATCH) {
        struct fingerprint_batch batch;
        batch.n = n - at < BATCH ? n - at : BATCH;
        memcpy(batch.picture, pictures + at, (size_t)batch.n * sizeof batch.picture[0]);
        fingerprint_sums<<<(batch.n + TILE - 1) / TILE, THREADS, 0, stream>>>(batch, weights);
        error = cudaGetLastError();
    }
    return error;
}
