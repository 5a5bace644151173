// Motion on CUDA: one step of each of many cameras in one launch, with the reference's bytes.
// Allocates nothing and does not wait for the device.
#ifndef FRAMED_KERNELS_CUDA_MOTION_CUDA_H
#define FRAMED_KERNELS_CUDA_MOTION_CUDA_H

#include <cuda_runtime_api.h>

#include "kernels/motion.h"

#ifdef __cplusplus
extern "C" {
#endif

// The blocks of a camera.
struct motion_cuda_blocks {
    int n;
    size_t shared_bytes; // per block; 0: they work in `memory`
};

struct motion_cuda {
    void *memory;                        // device memory, owned by the caller
    int threads;                         // per block
    struct motion_cuda_blocks few, many; // for launches of few cameras, and of many
};

// Loads the kernels before their first launch, which could otherwise wait for the device.
cudaError_t motion_cuda_load(void);

// Returns the size of a camera's device memory.
size_t motion_cuda_bytes(const struct motion *);

// Prepares `memory` (motion_cuda_bytes of device memory, on a multiple of 256 bytes) for a camera's
// first picture, in the order of the stream. `motion` is copied before it returns. Each step reads
// a picture's sums from `sums` and writes its results to `changes`, both in device memory and on
// multiples of 64 bytes.
cudaError_t motion_cuda_init(struct motion_cuda *ret, const struct motion *, void *memory,
                             const uint32_t *sums, struct motion_changes *changes, cudaStream_t);

// Makes a step of each camera, up to 256 per launch.
cudaError_t motion_cuda_launch(const struct motion_cuda *const cameras[], int n, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
