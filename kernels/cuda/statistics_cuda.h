// Statistics on CUDA: pictures of any cameras in one go, the reference's bytes. Nothing allocates,
// and nothing waits for the device.
#ifndef FRAMED_KERNELS_CUDA_STATISTICS_CUDA_H
#define FRAMED_KERNELS_CUDA_STATISTICS_CUDA_H

#include <cuda_runtime_api.h>

#include "kernels/statistics.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { STATISTICS_CUDA_BYTES = 384 };

struct statistics_cuda_picture {
    const struct statistics *statistics; // host memory, read before the launch returns
    struct image src;                    // device memory
    // STATISTICS_CUDA_BYTES of device memory, on a multiple of 16, zeroed ahead of the first launch
    // and after one that failed. Launches that share it are in one stream.
    void *workspace;
    // Device memory, or page-locked memory of the host that has the same address on the device.
    struct luma_statistics *ret;
    uint32_t *cells;
};

// Loads the kernels ahead of their first launch, which could wait for the device.
cudaError_t statistics_cuda_load(void);

// A launch for up to 32 pictures that have one kind of layout and of pass.
cudaError_t statistics_cuda_launch(const struct statistics_cuda_picture pictures[], int n,
                                   cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
