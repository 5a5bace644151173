// Trilinear interpolation with the arrays on a GPU.
#ifndef FRAMED_CLIENT_TRILINEAR_H
#define FRAMED_CLIENT_TRILINEAR_H

#include <stddef.h>
#include <stdint.h>

#include "client/framed.h"

#ifdef __cplusplus
extern "C" {
#endif

// Like their public namesakes, with checked parameters and n above 0. -ENODEV, -EIO.
int gpu_trilinear_forward(float *out, const float *features, const float *points, size_t n,
                          size_t f, const struct framed_place *);
int gpu_trilinear_backward(float *grad_features, float *grad_points, const float *grad_out,
                           const float *features, const float *points, size_t n, size_t f,
                           const struct framed_place *);

#ifdef __cplusplus
}
#endif
#endif
