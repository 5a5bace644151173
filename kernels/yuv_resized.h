// yuv with another geometry than its source's, made by warps. Private to the op.
#ifndef FRAMED_KERNELS_YUV_RESIZED_H
#define FRAMED_KERNELS_YUV_RESIZED_H

#include "kernels/warp.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes op->yuv.warps and the op's matrices for a result with the colour and format of op->dst.
// `geometry` has its size. The conversion in op->yuv is set; here it becomes one from RGB24. Errors
// as op_init; on success yuv_resized_finish frees it.
int yuv_resized_init(struct op *op, const struct warp_params *geometry, const struct image *src);
void yuv_resized_finish(struct yuv *);

struct band yuv_resized_source_rows(const struct yuv *, struct band out); // as op_source_rows

// Part of a result with kept samples, written by one of the warps.
struct yuv_part {
    const struct warp *warp;
    struct image dst; // the planes that the warp writes; they may be laid out from NULL
    struct band band; // of these planes
};

// Returns the number of parts.
int yuv_parts(struct yuv_part parts[YUV_WARPS_MAX], const struct yuv *, const struct image *dst,
              struct band band);

// yuv without a geometry, of one version.
typedef void yuv_fn(const struct image *dst, const struct image *src, const struct yuv *,
                    struct band band);

// Like op_fn, with a version's warp and conversion.
void yuv_resized(const struct image *dst, const struct image *src, const struct yuv *,
                 struct band band, bool filled, warp_fn *warp, yuv_fn *convert);

#ifdef __cplusplus
}
#endif
#endif
