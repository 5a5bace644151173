// Launches of kernels that are no ops, with the reference's bytes. They allocate nothing and do not
// wait for the device. The functions called *_load load kernels before their first launch, which
// could otherwise wait.
#ifndef FRAMED_KERNELS_CUDA_LAUNCH_H
#define FRAMED_KERNELS_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>
#include <errno.h>

#include "kernels/detect.h"
#include "kernels/fingerprint.h"
#include "kernels/motion.h"
#include "kernels/statistics.h"
#include "kernels/trilinear.h"

#ifdef __cplusplus
extern "C" {
#endif

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

// --- statistics, for pictures of any cameras at once

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

cudaError_t statistics_cuda_load(void);

// Makes one launch per 32 pictures with the same kind of layout and of pass.
cudaError_t statistics_cuda_launch(const struct statistics_cuda_picture pictures[], int n,
                                   cudaStream_t);

// --- motion: one step of each of many cameras in one launch

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

// --- fingerprints, for pictures of any cameras at once

// A picture given by its sums of cells. All are device memory; `ret` may also be page-locked host
// memory with the same address on the device.
struct fingerprint_cuda_picture {
    const struct fingerprint_cells *cells; // on a multiple of 8 bytes, like `ret`
    const uint32_t *sums;
    uint64_t *ret;
};

cudaError_t fingerprint_cuda_load(void);

// Makes n fingerprints from n pictures of 32 x 32, in one launch; device memory, on multiples of 8
// bytes.
cudaError_t fingerprint_cuda(const uint8_t (*luma)[FINGERPRINT_LUMA], uint64_t *ret, int n,
                             cudaStream_t);

// Makes fingerprints from sums of cells, up to 64 per launch.
cudaError_t fingerprint_cuda_cells(const struct fingerprint_cuda_picture pictures[], int n,
                                   cudaStream_t);

// --- detection, for a batch of pictures at once

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

// --- trilinear interpolation. Arrays are device memory that must stay until the stream is done.

// Put trilinear_forward and trilinear_backward of kernels/trilinear.h on the stream. n and f are
// above 0, and f is at most TRILINEAR_FEATURES_MAX.
cudaError_t trilinear_cuda_forward(float *out, const float *features, const float *points, size_t n,
                                   size_t f, cudaStream_t);
cudaError_t trilinear_cuda_backward(float *grad_features, float *grad_points, const float *grad_out,
                                    const float *features, const float *points, size_t n, size_t f,
                                    cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
