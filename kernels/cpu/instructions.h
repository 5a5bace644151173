// Which sets of instructions this CPU has, of those that versions are written for.
#ifndef FRAMED_KERNELS_CPU_INSTRUCTIONS_H
#define FRAMED_KERNELS_CPU_INSTRUCTIONS_H

#include <stdbool.h>

// A build of -DFRAMED_SCALAR (`make SCALAR=1`) leaves the versions for wide registers out.
#if defined(__x86_64__) && !defined(FRAMED_SCALAR)
#define FRAMED_X86
#endif

#ifdef FRAMED_X86
bool avx2_runs(void);   // with FMA and F16C
bool avx512_runs(void); // as avx2, with BW, VL, DQ, VBMI, VNNI and VPOPCNTDQ
#endif

#endif
