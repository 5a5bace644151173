// Trilinear interpolation on CUDA, with the reference's bytes. Allocates nothing and does not wait
// for the device: arrays are device memory that must stay until the stream is done.
#ifndef FRAMED_KERNELS_CUDA_TRILINEAR_CUDA_H
#define FRAMED_KERNELS_CUDA_TRILINEAR_CUDA_H

#include <cuda_runtime_api.h>

#include "kernels/trilinear.h"

#ifdef __cplusplus
extern "C" {
#endif

// Put trilinear_forward and trilinear_backward of kernels/trilinear.h on the stream. n and f are
// above 0, and f is at most TRILINEAR_FEATURES_MAX.
cudaError_t trilinear_cuda_forward(float *out, const float *features, const float *points, size_t n,
                                   size_t f, cudaStream_t);
cudaError_t trilinear_cuda_backward(float *grad_features, float *grad_points, const float *grad_out,
                                    const float *features, const float *points, size_t n, size_t f,
                                    cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
