// The part of the versions in libframed: the CPU's instruction sets, and the choice of detection's.
#include "kernels/cpu/versions.h"

#ifdef FRAMED_X86
#include <cpuid.h>

static bool f16c_runs(void) // clang 14's __builtin_cpu_supports does not have it
{
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

bool avx2_runs(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c_runs();
}

bool avx512_runs(void)
{
    return avx2_runs() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni") &&
           __builtin_cpu_supports("avx512vpopcntdq");
}
#endif

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
