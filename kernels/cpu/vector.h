// The wide registers that a file is compiled for: its flags choose. `vec` holds LANES 16-bit lanes;
// `flt` holds FLOATS floats. The templates that include this name no instruction of one CPU.
#ifndef FRAMED_KERNELS_CPU_VECTOR_H
#define FRAMED_KERNELS_CPU_VECTOR_H

#if defined(__AVX512VBMI__)
#include "kernels/cpu/vector_avx512.h"
#elif defined(__AVX2__)
#include "kernels/cpu/vector_avx2.h"
#elif defined(__aarch64__)
#include "kernels/cpu/vector_neon.h"
#endif

enum { PIXELS = 2 * LANES }; // levels that are packed and stored at a time

#endif
