#include "kernels/cpu/detect_versions.h"

#include "kernels/cpu/instructions.h"

detect_fn *detect_best(void)
{
#ifdef FRAMED_X86
    if (avx512_runs())
        return detect_avx512;
    if (avx2_runs())
        return detect_avx2;
#endif
#ifdef __aarch64__
    return detect_neon;
#else
    return detect_reference;
#endif
}
