// Statistics on CUDA for pictures of any cameras at once, with the reference's bytes. Allocates
// nothing and does not wait for the device.
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
    // STATISTICS_CUDA_BYTES of device memory, on a multiple of 16, zeroed before the first launch
    // and after a failed one. Launches that share it use one stream.
    void *workspace;
    // Device memory, or page-locked host memory with the same address on the device.
    struct luma_statistics *ret;
    uint32_t *cells;
};

// Loads the kernels before their first launch, which could otherwise wait for the device.
cudaError_t statistics_cuda_load(void);

// Makes one launch per 32 pictures with the same kind of layout and of pass.
cudaError_t statistics_cuda_launch(const struct statistics_cuda_picture pictures[], int n,
                                   cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
