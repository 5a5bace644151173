// Clusters: blocks that run together, wait for each other and read each other's shared memory. GPUs
// before Hopper have none, so a block is alone there. Host builds have stand-ins.
#ifndef FRAMED_KERNELS_CUDA_CLUSTER_CUH
#define FRAMED_KERNELS_CUDA_CLUSTER_CUH

#ifdef __CUDACC__
#include <stdint.h>

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
