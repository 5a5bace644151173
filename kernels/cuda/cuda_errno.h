// Errors of CUDA as errno's.
#ifndef FRAMED_KERNELS_CUDA_CUDA_ERRNO_H
#define FRAMED_KERNELS_CUDA_CUDA_ERRNO_H

#include <cuda_runtime_api.h>
#include <errno.h>

// 0, -ENOMEM, -ENODEV or -EIO. CUDA's last error is cleared, which the next launch would take for
// its own.
static inline int cuda_errno(cudaError_t error)
{
    if (error == cudaSuccess)
        return 0;
    cudaGetLastError();
    switch (error) {
    case cudaErrorMemoryAllocation:
        return -ENOMEM;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
    case cudaErrorNoKernelImageForDevice:
        return -ENODEV;
    default:
        return -EIO;
    }
}

#endif
