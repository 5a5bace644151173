// Detection and trilinear interpolation with the arrays on a GPU.
#ifndef FRAMED_CLIENT_GPU_H
#define FRAMED_CLIENT_GPU_H

#include <stddef.h>

#include "client/framed.h"
#include "kernels/detect.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gpu_detector;

// Prepares calls of up to `pictures` on a device. -ENODEV, -EIO, -ENOMEM; `ret_why`: the cause.
int gpu_detector_open(struct gpu_detector **ret, const struct detect *, int pictures, int device,
                      const char **ret_why);
void gpu_detector_close(struct gpu_detector *);

// Detects in n pictures after the stream's earlier work, and waits until it is done. The detector
// owns the results, one after the other, until its next call. -EIO.
int gpu_detector_run(struct gpu_detector *, const struct detect *, const struct detect_input in[],
                     int n, void *stream, const struct detect_result **ret, const char **ret_why);

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
