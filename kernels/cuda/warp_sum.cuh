// Sums and maxima over the lanes of a warp. Called by whole warps.
#ifndef FRAMED_KERNELS_CUDA_WARP_SUM_CUH
#define FRAMED_KERNELS_CUDA_WARP_SUM_CUH

#include <stdint.h>

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

#endif
