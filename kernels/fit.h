// Where each fit puts a picture, and how large the tensor is.
#ifndef FRAMED_KERNELS_FIT_H
#define FRAMED_KERNELS_FIT_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// The tensor's size in pixels; how a box of source pixels is scaled; and where in the tensor,
// counted from its edge, the box's middle lies.
struct placement {
    int tensor_width, tensor_height;
    double sx, sy, x, y;
};

// `width` and `height`: of the box around the source's crop, turned.
struct placement fit_place(const struct warp_params *params, double width, double height);

// What of the crop, which lies in the picture, the fit takes: its sides may be 0.
struct rect fit_crop(enum fit fit, struct rect crop, const struct image *src);

#ifdef __cplusplus
}
#endif
#endif
