// Fingerprints on CUDA: pictures of any cameras in one go, the reference's bits. Nothing allocates,
// and nothing waits for the device.
#ifndef FRAMED_KERNELS_CUDA_FINGERPRINT_CUDA_H
#define FRAMED_KERNELS_CUDA_FINGERPRINT_CUDA_H

#include <cuda_runtime_api.h>

#include "kernels/fingerprint.h"

#ifdef __cplusplus
extern "C" {
#endif

// A picture of which there are sums of cells. All of it is device memory, but that `ret` may be
// page-locked memory of the host that has the same address on the device.
struct fingerprint_cuda_picture {
    const struct fingerprint_cells *cells; // on a multiple of 8 bytes, as `ret`
    const uint32_t *sums;
    uint64_t *ret;
};

// Loads the kernels ahead of their first launch, which could wait for the device.
cudaError_t fingerprint_cuda_load(void);

// From n pictures of 32 x 32 to as many fingerprints, in one launch: device memory, on multiples of
// 8 bytes.
cudaError_t fingerprint_cuda(const uint8_t (*luma)[FINGERPRINT_LUMA], uint64_t *ret, int n,
                             cudaStream_t);

// From sums of cells; a launch for up to 64.
cudaError_t fingerprint_cuda_cells(const struct fingerprint_cuda_picture pictures[], int n,
                                   cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
