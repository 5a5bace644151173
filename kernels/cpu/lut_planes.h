// Applies a LUT to levels in planes, for the templates of the warp.
#ifndef FRAMED_KERNELS_CPU_LUT_PLANES_H
#define FRAMED_KERNELS_CPU_LUT_PLANES_H

#if defined(__aarch64__)
#include "kernels/lut.h"

static inline void lut_planes(const struct lut *lut, uint8_t *r, uint8_t *g, uint8_t *b, int n)
{
    for (int i = 0; i < n; i++) {
        uint8_t level[3] = {r[i], g[i], b[i]};
        lut_pixel(lut, level);
        r[i] = level[0];
        g[i] = level[1];
        b[i] = level[2];
    }
}
#else
#include "kernels/cpu/lut_x86.h"
#endif

#endif
