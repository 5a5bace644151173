// A warp's block in device memory, which the warp kernels read.
#ifndef FRAMED_KERNELS_CUDA_WARP_BLOCK_CUH
#define FRAMED_KERNELS_CUDA_WARP_BLOCK_CUH

#include "kernels/cuda/cuda.h"

// Like the members of cuda_op; sizes are multiples of 16 bytes.
size_t warp_block_bytes(const struct warp *);
size_t warp_block_room(const struct warp *);
void warp_block_pack(const struct warp *, uint8_t *host, uint8_t *device, const struct lut *lut);
// Returns the block's address of the op's rows; the tables of columns follow as in struct warp.
const struct warp_row *warp_block_rows(const struct warp *, const void *block);

#endif
