// Sorts the best keys of a list of any length, in one block.
#ifndef FRAMED_KERNELS_CUDA_DETECT_SORT_CUH
#define FRAMED_KERNELS_CUDA_DETECT_SORT_CUH

#include "kernels/cuda/detect_batch.cuh"

// Returns, in lane i, the sum of `x` of lanes 0 to i.
static __device__ inline uint32_t sum_up_to_lane(uint32_t x)
{
    const unsigned lane = threadIdx.x % LANES_OF_WARP;
    for (unsigned apart = 1; apart < LANES_OF_WARP; apart *= 2) {
        const uint32_t before = __shfl_sync(~0u, x, (lane - apart) % LANES_OF_WARP);
        x += lane >= apart ? before : 0;
    }
    return x;
}

// Returns the largest of the `wanted` smallest of n keys, found digit by digit from the highest.
static __device__ inline uint64_t keys_bound(const uint64_t *keys, uint32_t n, uint32_t wanted)
{
    enum { BINS = 256, BINS_OF_LANE = BINS / LANES_OF_WARP };
    __shared__ uint32_t bins[BINS];
    __shared__ uint64_t bound;
    if (threadIdx.x == 0)
        bound = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
        for (int i = threadIdx.x; i < BINS; i += FINISH_THREADS)
            bins[i] = 0;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < n; i += FINISH_THREADS)
            if (shift == 56 || keys[i] >> (shift + 8) == bound >> (shift + 8))
                atomicAdd(&bins[keys[i] >> shift & (BINS - 1)], 1u);
        __syncthreads();
        if (threadIdx.x < LANES_OF_WARP) { // the digit at which the sum of bins reaches `wanted`
            const uint32_t *own = bins + threadIdx.x * BINS_OF_LANE;
            uint32_t mine = 0;
            for (int i = 0; i < BINS_OF_LANE; i++)
                mine += own[i];
            const uint32_t sum = sum_up_to_lane(mine);
            const bool here = sum >= wanted && sum - mine < wanted;
            const unsigned where = __ballot_sync(~0u, here);
            uint32_t rest = wanted - (sum - mine);
            if (here) {
                int digit = 0;
                for (; own[digit] < rest; digit++)
                    rest -= own[digit];
                bound |= (uint64_t)(threadIdx.x * BINS_OF_LANE + digit) << shift;
            }
            wanted = __shfl_sync(~0u, rest, __ffs((int)where) - 1);
        }
        __syncthreads();
    }
    return bound;
}

// Copies the best m of n keys to `to`, in any order, and pads with the largest possible key.
static __device__ inline void keys_take(uint64_t *to, const uint64_t *keys, uint32_t n, uint32_t m,
                                        uint32_t padded)
{
    __shared__ uint32_t taken;
    if (n > m) {
        const uint64_t bound = keys_bound(keys, n, m);
        if (threadIdx.x == 0)
            taken = 0;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < n; i += FINISH_THREADS)
            if (keys[i] <= bound)
                to[atomicAdd(&taken, 1u)] = keys[i];
    } else {
        for (uint32_t i = threadIdx.x; i < n; i += FINISH_THREADS)
            to[i] = keys[i];
    }
    for (uint32_t i = m + threadIdx.x; i < padded; i += FINISH_THREADS)
        to[i] = ~(uint64_t)0;
}

// Keys exchanged between threads; the two buffers alternate, so a step needs only one barrier.
struct meeting {
    uint64_t keys[2][FINISH_THREADS];
};

// Returns a thread's key after a step, from its own key and the one `apart` places away.
static __device__ inline uint64_t key_of_pair(uint64_t key, uint64_t other, uint32_t i,
                                              uint32_t apart, uint32_t run)
{
    const bool smaller = ((i & apart) == 0) == ((i & run) == 0);
    return (key < other) == smaller ? key : other;
}

// Sorts the keys of a warp, one per thread at i in the list, into sorted runs.
static __device__ inline uint64_t key_sort(uint64_t key, uint32_t i)
{
#pragma unroll
    for (uint32_t run = 2; run <= LANES_OF_WARP; run *= 2)
#pragma unroll
        for (uint32_t apart = run / 2; apart > 0; apart /= 2)
            key = key_of_pair(key, __shfl_xor_sync(~0u, key, apart), i, apart, run);
    return key;
}

// Merges sorted runs of half of `run` keys into runs of `run`, more than a warp's. If that is more
// than FINISH_THREADS, its first steps are already done.
static __device__ inline uint64_t key_merge(uint64_t key, uint32_t i, uint32_t run,
                                            struct meeting *meet, int *turn)
{
    uint32_t apart = run < FINISH_THREADS ? run / 2 : FINISH_THREADS / 2;
    for (; apart >= LANES_OF_WARP; apart /= 2) {
        meet->keys[*turn][threadIdx.x] = key;
        __syncthreads();
        key = key_of_pair(key, meet->keys[*turn][threadIdx.x ^ apart], i, apart, run);
        *turn ^= 1;
    }
#pragma unroll
    for (apart = LANES_OF_WARP / 2; apart > 0; apart /= 2)
        key = key_of_pair(key, __shfl_xor_sync(~0u, key, apart), i, apart, run);
    return key;
}

// Sorts the best m of n keys to `to`, with room for a power of two, at least FINISH_THREADS.
static __device__ inline void keys_sort(uint64_t *to, const uint64_t *keys, uint32_t n, uint32_t m,
                                        struct meeting *meet)
{
    int turn = 0;
    uint32_t length = LANES_OF_WARP; // number of keys to sort
    while (length < m)
        length *= 2;
    const uint32_t part = FINISH_THREADS, padded = length < part ? part : length;
    keys_take(to, keys, n, m, padded);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < padded; i += part) {
        uint64_t key = key_sort(to[i], i);
        for (uint32_t run = 2 * LANES_OF_WARP; run <= length && run <= part; run *= 2)
            key = key_merge(key, i, run, meet, &turn);
        to[i] = key;
    }
    for (uint32_t run = 2 * part; run <= length; run *= 2) {
        for (uint32_t apart = run / 2; apart >= part; apart /= 2) {
            __syncthreads();
            for (uint32_t i = threadIdx.x; i < length / 2; i += part) {
                const uint32_t a = 2 * i - (i & (apart - 1)), b = a + apart;
                const uint64_t x = to[a], y = to[b];
                if ((x > y) == ((a & run) == 0)) {
                    to[a] = y;
                    to[b] = x;
                }
            }
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < length; i += part)
            to[i] = key_merge(to[i], i, run, meet, &turn);
    }
    __syncthreads();
}

#endif
