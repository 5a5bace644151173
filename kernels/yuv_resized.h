// yuv of another geometry than its source: made by warps. Private to the op.
#ifndef FRAMED_KERNELS_YUV_RESIZED_H
#define FRAMED_KERNELS_YUV_RESIZED_H

#include "kernels/warp.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes op->yuv.warps, and the op's matrices, for a result of the colour and format that op->dst
// has. `geometry` with its size. What of op->yuv speaks of a conversion is set; here it becomes one
// from RGB24. Errors as op_init; without one, yuv_resized_finish frees what was made.
int yuv_resized_init(struct op *op, const struct warp_params *geometry, const struct image *src);
void yuv_resized_finish(struct yuv *);

struct band yuv_resized_source_rows(const struct yuv *, struct band out); // as op_source_rows

// What one of the warps writes into a band of a result whose samples are kept.
struct yuv_part {
    const struct warp *warp;
    struct image dst; // of the planes that the warp writes; they may lie from NULL on
    struct band band; // of them
};

// Returns how many parts there are.
int yuv_parts(struct yuv_part parts[YUV_WARPS_MAX], const struct yuv *, const struct image *dst,
              struct band band);

// yuv without a geometry, of one version.
typedef void yuv_fn(const struct image *dst, const struct image *src, const struct yuv *,
                    struct band band);

// As op_fn, by a version's warp and its conversion.
void yuv_resized(const struct image *dst, const struct image *src, const struct yuv *,
                 struct band band, bool filled, warp_fn *warp, yuv_fn *convert);

#ifdef __cplusplus
}
#endif
#endif
