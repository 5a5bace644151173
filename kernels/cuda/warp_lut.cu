// Warps of straight axes with a LUT, in a separate file because they have many kernels.
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/warp_axis.cuh"

template <typename T> static const void *kernel_of(enum pixel_format source)
{
    switch (source) {
#define CASE(format)                                                                               \
    case format:                                                                                   \
        return (const void *)warp_axis<format, T, false, false, true>;
        FOR_EACH_SOURCE(CASE)
#undef CASE
    default:
        return NULL;
    }
}

const void *warp_lut_kernel(enum pixel_format source, size_t element_bytes)
{
    return element_bytes == 1   ? kernel_of<uint8_t>(source)
           : element_bytes == 2 ? kernel_of<uint16_t>(source)
                                : kernel_of<uint32_t>(source);
}
