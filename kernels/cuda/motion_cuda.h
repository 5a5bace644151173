// Motion on CUDA: a step of each of many cameras in one launch, the reference's bytes. Nothing
// allocates, and nothing waits for the device.
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
    size_t shared_bytes; // of each; 0: they work in `memory`
};

// A camera.
struct motion_cuda {
    void *memory;                        // of the device, the caller's
    int threads;                         // of a block
    struct motion_cuda_blocks few, many; // in launches of few cameras, and of many
};

// Loads the kernels ahead of their first launch, which could wait for the device.
cudaError_t motion_cuda_load(void);

// Of the device memory of a camera.
size_t motion_cuda_bytes(const struct motion *);

// Makes `memory` (of the bytes above, on a multiple of 256 of the device) ready for a camera's
// first picture, in the order of the stream. `motion` is copied before it returns. From `sums` each
// step takes a picture's, and writes what it finds to `changes`, both in device memory and on
// multiples of 64 bytes.
cudaError_t motion_cuda_init(struct motion_cuda *ret, const struct motion *, void *memory,
                             const uint32_t *sums, struct motion_changes *changes, cudaStream_t);

// A step of each camera; a launch for up to 256.
cudaError_t motion_cuda_launch(const struct motion_cuda *const cameras[], int n, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
