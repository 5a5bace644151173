// What yuv asks of the wide registers that a file is compiled for: its flags choose. `vec` holds
// LANES bytes. The templates that include this name no instruction of one CPU.
#ifndef FRAMED_KERNELS_CPU_YUV_VECTOR_H
#define FRAMED_KERNELS_CPU_YUV_VECTOR_H

#if defined(__AVX512VBMI__)
#include "kernels/cpu/yuv_vector_avx512.h"
#elif defined(__AVX2__)
#include "kernels/cpu/yuv_vector_avx2.h"
#elif defined(__aarch64__)
#include "kernels/cpu/yuv_vector_neon.h"
#endif

#endif
