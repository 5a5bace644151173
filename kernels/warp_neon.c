#include "kernels/warp_lanes.h"

void warp_neon(const struct image *dst, const struct image *src, const struct warp *warp,
               struct band band)
{
    lanes_warp(dst, src, warp, band);
}
