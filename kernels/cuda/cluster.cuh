// Threads that run together: sums over warps and clusters. Host builds have stand-ins.
#ifndef FRAMED_KERNELS_CUDA_CLUSTER_CUH
#define FRAMED_KERNELS_CUDA_CLUSTER_CUH

#include <stdint.h>

// --- sums and maxima over the lanes of a warp. Called by whole warps.

enum { LANES = 32 };

static __device__ inline unsigned warp_sum(unsigned value)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    return __reduce_add_sync(~0u, value);
#else
    for (int other = LANES / 2; other > 0; other /= 2)
        value += __shfl_xor_sync(~0u, value, other);
    return value;
#endif
}

static __device__ inline unsigned warp_max(unsigned value)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    return __reduce_max_sync(~0u, value);
#else
    for (int other = LANES / 2; other > 0; other /= 2)
        value = max(value, __shfl_xor_sync(~0u, value, other));
    return value;
#endif
}

// `value` is below 2^48.
static __device__ inline uint64_t warp_sum_wide(uint64_t value)
{
    return warp_sum((unsigned)value & 0xffff) +
           ((uint64_t)warp_sum((unsigned)(value >> 16) & 0xffff) << 16) +
           ((uint64_t)warp_sum((unsigned)(value >> 32)) << 32);
}

// --- clusters: blocks that run together, wait for each other and read each other's shared memory.
// GPUs before Hopper have none, so a block is alone there.

#ifdef __CUDACC__
static __device__ inline int cluster_size()
{
    unsigned n = 1;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(n));
#endif
    return (int)n;
}

static __device__ inline int cluster_rank()
{
    unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return (int)rank;
}

// Every thread of the cluster calls both. After cluster_wait, all writes that others made before
// cluster_arrive are visible.
static __device__ inline void cluster_arrive()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

static __device__ inline void cluster_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

// Maps `own`, in shared memory, to the same variable of the block with that rank.
template <typename T> static __device__ inline const volatile T *cluster_at(const T *own, int rank)
{
#if __CUDA_ARCH__ >= 900
    uint64_t at;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(at) : "l"(own), "r"(rank));
    return (const volatile T *)at;
#else
    return own;
#endif
}
#endif

static __device__ inline void cluster_sync()
{
    cluster_arrive();
    cluster_wait();
}

// Returns the sum of `own` over all blocks.
static __device__ inline unsigned cluster_sum(const unsigned *own)
{
    unsigned sum = 0;
    for (int rank = 0; rank < cluster_size(); rank++)
        sum += *cluster_at(own, rank);
    return sum;
}

#endif
