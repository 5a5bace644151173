// Detection on CUDA: a batch of pictures in one go, the reference's bytes. Nothing allocates, and
// nothing waits for the device.
#ifndef FRAMED_KERNELS_CUDA_DETECT_CUDA_H
#define FRAMED_KERNELS_CUDA_DETECT_CUDA_H

#include <cuda_runtime_api.h>

#include "kernels/detect.h"

#ifdef __cplusplus
extern "C" {
#endif

// Of the device memory that a batch of so many pictures needs. At most DETECT_CANDIDATES_CUDA
// candidates of a picture go on.
size_t detect_cuda_bytes(const struct detect *, int pictures);

// Makes the workspace (on a multiple of 256 bytes, of the device) ready for batches of up to
// `pictures`, in the order of the stream; `detect` is copied before it returns. After an error of a
// batch it must be made ready anew.
cudaError_t detect_cuda_init(const struct detect *, void *workspace, int pictures, cudaStream_t);

// Puts a batch onto the stream. `in`: n of them, whose tensors are device memory, copied before it
// returns. `results`: n blocks of detect_result_bytes, one behind the other; device memory, or
// page-locked memory of the host that has the same address on the device, so that the results are
// there without a copy when the stream is done. Batches of one workspace are in one stream.
cudaError_t detect_cuda_launch(const struct detect *, const struct detect_input in[], int n,
                               struct detect_result *results, void *workspace, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
