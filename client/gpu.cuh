// Helpers for libframed's CUDA calls.
#ifndef FRAMED_CLIENT_GPU_CUH
#define FRAMED_CLIENT_GPU_CUH

#include "kernels/cuda/launch.h"

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

#endif
