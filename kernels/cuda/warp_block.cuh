// An op's block in device memory as the warp kernels read it.
#ifndef FRAMED_KERNELS_CUDA_WARP_BLOCK_CUH
#define FRAMED_KERNELS_CUDA_WARP_BLOCK_CUH

#include "kernels/cuda/cuda.h"
#include "kernels/sample.h"

enum { AXIS_COLUMNS = 4 }; // pixels of a row that one thread makes: divides warp_padded_width()

// As cuda_op.block_bytes and cuda_op.block_pack.
size_t warp_block_bytes(const struct op *);
void warp_block_pack(const struct op *, uint8_t *host, uint8_t *device);
// Whether the axes do not mix and warp_axis.cuh may make the op. Windows of one column have no
// neighbours.
bool warp_has_axes(const struct warp *);
// Where the block has the op's rows; the tables of columns follow as in struct warp.
const struct warp_row *warp_block_rows(const struct warp *, const void *block);

#endif
