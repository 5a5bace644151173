// Placement of a picture in the tensor by each fit, and the tensor's size.
#ifndef FRAMED_KERNELS_FIT_H
#define FRAMED_KERNELS_FIT_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// The tensor's size in pixels; the scale of a box of source pixels; and the position of the box's
// middle in the tensor, counted from the tensor's edge.
struct placement {
    int tensor_width, tensor_height;
    double sx, sy, x, y;
};

// `width` and `height`: of the box around the turned crop of the source.
struct placement fit_place(const struct warp_params *params, double width, double height);

// Returns the part of the crop (in the picture) that the fit uses: its sides may be 0.
struct rect fit_crop(enum fit fit, struct rect crop, const struct image *src);

#ifdef __cplusplus
}
#endif
#endif
