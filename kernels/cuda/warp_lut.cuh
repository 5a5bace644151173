// The warp of straight axes with a LUT, in a file of its own because its kernels are many.
#ifndef FRAMED_KERNELS_CUDA_WARP_LUT_CUH
#define FRAMED_KERNELS_CUDA_WARP_LUT_CUH

#include "kernels/cuda/cuda.h"

// warp_axis of a source and elements of 1, 2 or 4 bytes, with a LUT.
const void *warp_lut_kernel(enum pixel_format source, size_t element_bytes);

#endif
