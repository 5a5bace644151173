// Converts CUDA errors to errno values.
#ifndef FRAMED_KERNELS_CUDA_CUDA_ERRNO_H
#define FRAMED_KERNELS_CUDA_CUDA_ERRNO_H

#include <cuda_runtime_api.h>
#include <errno.h>

// Returns 0, -ENOMEM, -ENODEV or -EIO. Clears CUDA's last error, which the next launch would
// otherwise report as its own.
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
