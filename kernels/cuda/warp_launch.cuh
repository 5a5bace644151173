// Warps onto a stream: those of the op `warp`, and those that make resized pictures for `yuv`.
#ifndef FRAMED_KERNELS_CUDA_WARP_LAUNCH_CUH
#define FRAMED_KERNELS_CUDA_WARP_LAUNCH_CUH

#include "kernels/cuda/cuda.h"

// A band of one warp's picture.
struct cuda_warp {
    struct image src;        // device memory
    void *dst;               // device memory: the start of the whole picture, which is tight
    const void *block;       // device memory: what warp_block_pack made
    const struct warp *warp; // host
    struct band band;
};

// For n warps, CUDA_ITEMS_MAX at most, of one element size and the same format of source. `kept`:
// parts of results of `yuv` whose samples keep their values. One launch where one kernel can make
// all, at most four.
cudaError_t warps_launch(const struct cuda_warp warps[], int n, bool kept, cudaStream_t);
// As cuda_op.load.
cudaError_t warps_load(const struct warp *, bool kept);

#endif
