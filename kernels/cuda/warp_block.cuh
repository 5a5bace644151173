// An op's block in device memory as the warp kernels read it.
#ifndef FRAMED_KERNELS_CUDA_WARP_BLOCK_CUH
#define FRAMED_KERNELS_CUDA_WARP_BLOCK_CUH

#include "kernels/cuda/cuda.h"
#include "kernels/sample.h"

enum { AXIS_COLUMNS = 4 }; // pixels of a row that one thread makes

// The rows that an output row reads, and how much of each; coverage as in fixed.h.
struct __align__(16) axis_row
{
    uint16_t luma[2], luma_weight, coverage;
    uint16_t chroma[2], chroma_weight, unused;
};

// One column's left tap as bytes from the row's start, and what the left and the right tap weigh,
// in the low and the high half. The right tap is always the next sample: where both are the same
// sample, one weight is 0.
struct __align__(8) axis_column
{
    uint32_t offset, weights;
};

// Tables of columns are padded to whole threads.
static inline FRAMED_HD int axis_columns(int width)
{
    return (width + AXIS_COLUMNS - 1) / AXIS_COLUMNS * AXIS_COLUMNS;
}

// As cuda_op.block_bytes and cuda_op.block_pack.
size_t warp_block_bytes(const struct op *);
void warp_block_pack(const struct op *, uint8_t *host, uint8_t *device);
// Whether the source's x depends on the output's x alone and its y on y alone, and warp_axis.cuh
// may make the op.
bool warp_has_axes(const struct warp *);
// Where the block has the axis_rows; the axis_columns of luma, those of chroma and the coverage of
// columns follow, each padded to axis_columns(). Only with warp_has_axes.
size_t warp_axis_offset(const struct warp *);

#endif
