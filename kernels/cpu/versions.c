#include "kernels/cpu/versions.h"

#include <string.h>

static bool everywhere(void)
{
    return true;
}

static const struct version scalar = {
    .name = "scalar",
    .runs = everywhere,
    .run = {[OP_WARP] = op_reference, [OP_YUV] = op_reference},
    .statistics = statistics_reference,
    .motion = motion_reference,
};

#ifdef FRAMED_X86
static const struct version avx2 = {
    .name = "avx2",
    .runs = avx2_runs,
    .run = {[OP_WARP] = warp_op_avx2, [OP_YUV] = yuv_avx2},
    .statistics = statistics_avx2,
    .motion = motion_avx2,
};
static const struct version avx512 = {
    .name = "avx512",
    .runs = avx512_runs,
    .run = {[OP_WARP] = warp_op_avx512, [OP_YUV] = yuv_avx512},
    .statistics = statistics_avx512,
    .motion = motion_avx512,
};
#endif

#ifdef __aarch64__
static const struct version neon = {
    .name = "neon",
    .runs = everywhere,
    .run = {[OP_WARP] = warp_op_neon, [OP_YUV] = yuv_neon},
    .statistics = statistics_neon,
    .motion = motion_neon,
};
#endif

const struct version *const versions[] = {
#ifdef FRAMED_X86
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
