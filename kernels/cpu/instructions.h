// Instruction sets of this CPU that have versions of kernels.
#ifndef FRAMED_KERNELS_CPU_INSTRUCTIONS_H
#define FRAMED_KERNELS_CPU_INSTRUCTIONS_H

#include <stdbool.h>

// -DFRAMED_SCALAR (`make SCALAR=1`) excludes the versions for wide registers.
#if defined(__x86_64__) && !defined(FRAMED_SCALAR)
#define FRAMED_X86
#endif

#ifdef FRAMED_X86
bool avx2_runs(void);   // with FMA and F16C
bool avx512_runs(void); // as avx2, with BW, VL, DQ, VBMI, VNNI and VPOPCNTDQ
#endif

#endif
