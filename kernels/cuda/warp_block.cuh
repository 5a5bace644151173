// An op's block in device memory, which the warp kernels read.
#ifndef FRAMED_KERNELS_CUDA_WARP_BLOCK_CUH
#define FRAMED_KERNELS_CUDA_WARP_BLOCK_CUH

#include "kernels/cuda/cuda.h"

// As the members of cuda_op.
size_t warp_block_bytes(const struct op *);
size_t warp_block_room(const struct op *);
void warp_block_pack(const struct op *, uint8_t *host, uint8_t *device);
// Where the block has the op's rows; the tables of columns follow as in struct warp.
const struct warp_row *warp_block_rows(const struct warp *, const void *block);

#endif
