// Instructions that the compiler has no name for, and one that it would not choose. A host that has
// none of them (tests/kernels/cpu) has stand-ins with these names.
#ifndef FRAMED_KERNELS_CUDA_PTX_CUH
#define FRAMED_KERNELS_CUDA_PTX_CUH

#ifdef __CUDACC__
#include <stdint.h>

// In assembly because the compiler would add the column to row * stride first, for each pixel.
static __device__ inline const uint8_t *row_start(const uint8_t *plane, int row, int stride)
{
    const uint8_t *start;
    asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(start) : "r"(row), "r"(stride), "l"(plane));
    return start;
}

// Two numbers clamped to bytes, `above` in the two high bytes.
static __device__ inline unsigned bytes_packed(int low, int high, unsigned above)
{
    unsigned packed;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(packed) : "r"(high), "r"(low), "r"(above));
    return packed;
}
#endif

#endif
