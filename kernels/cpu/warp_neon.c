#include "kernels/cpu/versions.h"
#include "kernels/cpu/warp_lanes.h"

void warp_neon(const struct image *dst, const struct image *src, const struct op *op,
               struct band band, bool filled)
{
    lanes_warp(dst, src, op, band, filled);
}
