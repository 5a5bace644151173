// Which sets of instructions this CPU has, of those that versions are written for.
#ifndef FRAMED_KERNELS_CPU_INSTRUCTIONS_H
#define FRAMED_KERNELS_CPU_INSTRUCTIONS_H

#include <stdbool.h>

#ifdef __x86_64__
bool avx2_runs(void);   // with FMA and F16C
bool avx512_runs(void); // as avx2, with BW, VL, DQ, VBMI, VNNI and VPOPCNTDQ
#endif

#endif
