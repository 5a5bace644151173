// Versions of the cpu's kernels: the reference, and versions in wide registers with the same bytes.
#ifndef FRAMED_KERNELS_CPU_VERSIONS_H
#define FRAMED_KERNELS_CPU_VERSIONS_H

#include "kernels/detect.h"
#include "kernels/motion.h"
#include "kernels/statistics.h"
#include "kernels/warp.h"

// -DFRAMED_SCALAR (`make SCALAR=1`) excludes the versions for wide registers.
#if defined(__x86_64__) && !defined(FRAMED_SCALAR)
#define FRAMED_X86
#endif

#ifdef FRAMED_X86
bool avx2_runs(void);   // with FMA and F16C
bool avx512_runs(void); // as avx2, with BW, VL, DQ, VBMI, VNNI and VPOPCNTDQ
#endif

struct version {
    const char *name;
    bool (*runs)(void);   // on this CPU
    op_fn *run[OP_KINDS]; // by enum op_kind
    statistics_fn *statistics;
    motion_fn *motion;
};

// Each exists for its CPUs alone.
warp_fn warp_avx2, warp_avx512, warp_neon;
op_fn warp_op_avx2, warp_op_avx512, warp_op_neon;
motion_fn motion_avx2, motion_avx512, motion_neon;
op_fn yuv_avx2, yuv_avx512, yuv_neon;
statistics_fn statistics_avx2, statistics_avx512, statistics_neon;
detect_fn detect_avx2, detect_avx512, detect_neon;

// Best first, NULL-terminated; the last is "scalar", the reference, which runs everywhere.
extern const struct version *const versions[];

// Returns the version with that name, or the best one if `name` is NULL or empty. NULL if there is
// no such version or this CPU does not run it.
const struct version *version_find(const char *name);

// Returns the fastest version of detection that this CPU runs.
detect_fn *detect_best(void);

#endif
