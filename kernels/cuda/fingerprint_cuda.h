// Fingerprints on CUDA for pictures of any cameras at once, with the reference's bits. Allocates
// nothing and does not wait for the device.
#ifndef FRAMED_KERNELS_CUDA_FINGERPRINT_CUDA_H
#define FRAMED_KERNELS_CUDA_FINGERPRINT_CUDA_H

#include <cuda_runtime_api.h>

#include "kernels/fingerprint.h"

#ifdef __cplusplus
extern "C" {
#endif

// A picture given by its sums of cells. All are device memory; `ret` may also be page-locked host
// memory with the same address on the device.
struct fingerprint_cuda_picture {
    const struct fingerprint_cells *cells; // on a multiple of 8 bytes, like `ret`
    const uint32_t *sums;
    uint64_t *ret;
};

// Loads the kernels before their first launch, which could otherwise wait for the device.
cudaError_t fingerprint_cuda_load(void);

// Makes n fingerprints from n pictures of 32 x 32, in one launch; device memory, on multiples of 8
// bytes.
cudaError_t fingerprint_cuda(const uint8_t (*luma)[FINGERPRINT_LUMA], uint64_t *ret, int n,
                             cudaStream_t);

// Makes fingerprints from sums of cells, up to 64 per launch.
cudaError_t fingerprint_cuda_cells(const struct fingerprint_cuda_picture pictures[], int n,
                                   cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
