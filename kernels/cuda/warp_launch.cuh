// Puts warps on a stream: for the op `warp`, and to make resized pictures for `yuv`.
#ifndef FRAMED_KERNELS_CUDA_WARP_LAUNCH_CUH
#define FRAMED_KERNELS_CUDA_WARP_LAUNCH_CUH

#include "kernels/cuda/cuda.h"

// A band of one warp's picture.
struct cuda_warp {
    struct image src;        // device memory
    void *dst;               // device memory: the start of the whole picture, without padding
    const void *block;       // device memory, from warp_block_pack
    const struct warp *warp; // host
    struct band band;
};

// Launches n warps, at most CUDA_ITEMS_MAX, with the same element size and source format. `kept`:
// parts of results of `yuv` whose samples keep their values. Makes one launch for each kernel that
// they need.
cudaError_t warps_launch(const struct cuda_warp warps[], int n, bool kept, cudaStream_t);
// Like cuda_op.load.
cudaError_t warps_load(const struct warp *, bool kept);

#endif
