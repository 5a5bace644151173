#include "kernels/cpu/versions.h"
#include "kernels/cpu/warp_lanes.h"

void warp_neon(const struct image *dst, const struct image *src, const struct warp *warp,
               struct band band, bool filled)
{
    lanes_warp(dst, src, warp, band, filled);
}

void warp_op_neon(const struct image *dst, const struct image *src, const struct op *op,
                  struct band band, bool filled)
{
    lanes_warp(dst, src, &op->warp, band, filled);
}
