// Detection in wide registers.
#ifndef FRAMED_KERNELS_CPU_DETECT_VERSIONS_H
#define FRAMED_KERNELS_CPU_DETECT_VERSIONS_H

#include "kernels/detect.h"

// Each exists for its CPUs alone.
detect_fn detect_avx2, detect_avx512, detect_neon;

// Returns the fastest version that this CPU runs.
detect_fn *detect_best(void);

#endif
