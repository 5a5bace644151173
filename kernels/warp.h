// The warp without its op: the op `yuv` uses it for resized pictures.
#ifndef FRAMED_KERNELS_WARP_H
#define FRAMED_KERNELS_WARP_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// Like op_fn, for a warp.
typedef void warp_fn(const struct image *dst, const struct image *src, const struct warp *,
                     struct band band, bool filled);

// Makes the warp and its matrices. `points`: of the result's picture along x and y; NULL: all.
// Errors as op_init; on success warp_free frees it.
int warp_make(struct warp *, double src_to_dst[6], double dst_to_src[6],
              const struct warp_params *params, const struct image *src,
              const struct warp_points points[2]);
void warp_free(struct warp *); // accepts a zeroed one

warp_fn warp_reference;

#ifdef __cplusplus
}
#endif
#endif
