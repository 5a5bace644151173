// Detection and trilinear interpolation on CUDA.
#include "client/gpu.h"

#include <stdlib.h>

#include "kernels/cuda/launch.h"

// The detector's workspace on the device, and page-locked memory to which kernels write the results
// directly.
struct gpu_detector {
    int device, pictures;
    bool is_ready; // workspace is initialised
    void *workspace;
    struct detect_result *results;
};

namespace
{

// Makes a device the thread's current one during its lifetime, then restores the program's device.
class on_device
{
  public:
    explicit on_device(int device)
    {
        error_ = cudaGetDevice(&before_);
        if (error_ == cudaSuccess && before_ != device)
            error_ = cudaSetDevice(device);
        is_other_ = error_ == cudaSuccess && before_ != device;
    }
    ~on_device()
    {
        if (is_other_)
            cudaSetDevice(before_);
    }
    cudaError_t error() const
    {
        return error_;
    }

  private:
    cudaError_t error_;
    int before_ = 0;
    bool is_other_;
};

cudaError_t make_ready(struct gpu_detector *gpu, const struct detect *detect)
{
    cudaError_t error = cudaSuccess;
    if (!gpu->is_ready)
        error = detect_cuda_init(detect, gpu->workspace, gpu->pictures, nullptr);
    if (!gpu->is_ready && error == cudaSuccess)
        error = cudaStreamSynchronize(nullptr);
    gpu->is_ready = error == cudaSuccess;
    return error;
}

cudaError_t allocate(struct gpu_detector *gpu, const struct detect *detect)
{
    const size_t bytes = detect_result_bytes(detect) * (size_t)gpu->pictures;
    cudaError_t error = cudaMalloc(&gpu->workspace, detect_cuda_bytes(detect, gpu->pictures));
    if (error == cudaSuccess)
        error = cudaHostAlloc((void **)&gpu->results, bytes, cudaHostAllocPortable);
    return error == cudaSuccess ? make_ready(gpu, detect) : error;
}

} // namespace

int gpu_detector_open(struct gpu_detector **ret, const struct detect *detect, int pictures,
                      int device, const char **ret_why)
{
    struct gpu_detector *gpu = (struct gpu_detector *)calloc(1, sizeof *gpu);
    if (!gpu)
        return -ENOMEM;
    gpu->device = device;
    gpu->pictures = pictures;
    cudaError_t error;
    {
        const on_device here(device);
        error = here.error() == cudaSuccess ? allocate(gpu, detect) : here.error();
    }
    if (error == cudaSuccess) {
        *ret = gpu;
        return 0;
    }
    *ret_why = cudaGetErrorString(error);
    gpu_detector_close(gpu);
    return cuda_errno(error);
}

void gpu_detector_close(struct gpu_detector *gpu)
{
    if (!gpu)
        return;
    const on_device here(gpu->device);
    cudaFree(gpu->workspace);
    cudaFreeHost(gpu->results);
    free(gpu);
}

int gpu_detector_run(struct gpu_detector *gpu, const struct detect *detect,
                     const struct detect_input in[], int n, void *stream,
                     const struct detect_result **ret, const char **ret_why)
{
    const on_device here(gpu->device);
    cudaError_t error = here.error() == cudaSuccess ? make_ready(gpu, detect) : here.error();
    if (error == cudaSuccess)
        error =
            detect_cuda_launch(detect, in, n, gpu->results, gpu->workspace, (cudaStream_t)stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize((cudaStream_t)stream);
    *ret = gpu->results;
    if (error == cudaSuccess)
        return 0;
    gpu->is_ready = false;
    *ret_why = cudaGetErrorString(error);
    return cuda_errno(error) == -ENOMEM ? -ENOMEM : -EIO;
}

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
