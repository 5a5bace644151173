// Warps of straight axes with a LUT, in a separate file because they have many kernels.
#ifndef FRAMED_KERNELS_CUDA_WARP_LUT_CUH
#define FRAMED_KERNELS_CUDA_WARP_LUT_CUH

#include "kernels/cuda/cuda.h"

// Returns warp_axis with a LUT for a source and elements of 1, 2 or 4 bytes.
const void *warp_lut_kernel(enum pixel_format source, size_t element_bytes);

#endif
