// Instructions without a compiler intrinsic, and one that the compiler would not choose. A host
// build (tests/kernels/cpu) has stand-ins with these names.
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

// Returns two numbers clamped to bytes, with `above` in the two high bytes.
static __device__ inline unsigned bytes_packed(int low, int high, unsigned above)
{
    unsigned packed;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(packed) : "r"(high), "r"(low), "r"(above));
    return packed;
}

// Begins to copy 16 bytes of device memory, usually to shared memory. A thread's copies are
// complete after copies_end.
static __device__ inline void copy_begin(void *to, const void *from)
{
#if __CUDA_ARCH__ >= 800
    if (__isShared(to)) {
        const unsigned at = (unsigned)__cvta_generic_to_shared(to);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
        return;
    }
#endif
    *(uint4 *)to = *(const uint4 *)from;
}

static __device__ inline void copies_end()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Adds to a counter of the device. With barriers around it, the earlier writes of the block are
// visible to the block that reads the sum.
static __device__ inline unsigned atomic_add_ordered(unsigned *at, unsigned more)
{
    unsigned before;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(at), "r"(more)
                 : "memory");
    return before;
}

// Spreads the upper bit of each half to all its bits.
static __device__ inline unsigned pair_mask(unsigned pair)
{
    unsigned mask;
    asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(mask) : "r"(pair));
    return mask;
}
#endif

#endif
