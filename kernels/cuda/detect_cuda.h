// Detection on CUDA for a batch of pictures at once, with the reference's bytes. Allocates nothing
// and does not wait for the device.
#ifndef FRAMED_KERNELS_CUDA_DETECT_CUDA_H
#define FRAMED_KERNELS_CUDA_DETECT_CUDA_H

#include <cuda_runtime_api.h>

#include "kernels/detect.h"

#ifdef __cplusplus
extern "C" {
#endif

// Returns the device memory that a batch of `pictures` needs. At most DETECT_CANDIDATES_CUDA
// candidates of a picture are processed.
size_t detect_cuda_bytes(const struct detect *, int pictures);

// Prepares the workspace (device memory, on a multiple of 256 bytes) for batches of up to
// `pictures`, in the order of the stream; `detect` is copied before it returns. Must be called
// again after an error of a batch.
cudaError_t detect_cuda_init(const struct detect *, void *workspace, int pictures, cudaStream_t);

// Puts a batch on the stream. `in`: n inputs with tensors in device memory, copied before it
// returns. `results`: n blocks of detect_result_bytes, one after the other, in device memory or in
// page-locked host memory with the same address on the device; then the results need no copy when
// the stream is done. All batches of a workspace use one stream.
cudaError_t detect_cuda_launch(const struct detect *, const struct detect_input in[], int n,
                               struct detect_result *results, void *workspace, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
