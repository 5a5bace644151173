#include "kernels/cpu/versions.h"

#include <string.h>

#include "kernels/cpu/instructions.h"

static bool everywhere(void)
{
    return true;
}

static const struct version scalar = {
    "scalar", everywhere, {[OP_WARP] = op_reference, [OP_YUV] = op_reference}, detect_reference};

#ifdef __x86_64__
static const struct version avx2 = {
    "avx2", avx2_runs, {[OP_WARP] = warp_op_avx2, [OP_YUV] = yuv_avx2}, detect_avx2};
static const struct version avx512 = {
    "avx512", avx512_runs, {[OP_WARP] = warp_op_avx512, [OP_YUV] = yuv_avx512}, detect_avx512};
#endif

#ifdef __aarch64__
static const struct version neon = {
    "neon", everywhere, {[OP_WARP] = warp_op_neon, [OP_YUV] = yuv_neon}, detect_neon};
#endif

const struct version *const versions[] = {
#ifdef __x86_64__
    &avx512, &avx2,
#endif
#ifdef __aarch64__
    &neon,
#endif
    &scalar, NULL,
};

const struct version *version_find(const char *name)
{
    if (name && !*name)
        name = NULL;
    for (int i = 0; versions[i]; i++)
        if (name ? strcmp(name, versions[i]->name) == 0 : versions[i]->runs())
            return versions[i]->runs() ? versions[i] : NULL;
    return NULL;
}
