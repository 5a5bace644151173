#include "client/gpu.cuh"
#include "client/trilinear.h"
#include "kernels/cuda/launch.h"

int gpu_trilinear_forward(float *out, const float *features, const float *points, size_t n,
                          size_t f, const struct framed_place *place)
{
    const on_device here(place->device);
    cudaError_t error = here.error();
    if (error == cudaSuccess)
        error = trilinear_cuda_forward(out, features, points, n, f, (cudaStream_t)place->stream);
    return cuda_errno(error);
}

int gpu_trilinear_backward(float *grad_features, float *grad_points, const float *grad_out,
                           const float *features, const float *points, size_t n, size_t f,
                           const struct framed_place *place)
{
    const on_device here(place->device);
    cudaError_t error = here.error();
    if (error == cudaSuccess)
        error = trilinear_cuda_backward(grad_features, grad_points, grad_out, features, points, n,
                                        f, (cudaStream_t)place->stream);
    return cuda_errno(error);
}
