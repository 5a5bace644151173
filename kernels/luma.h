// Luma of one pixel of any source as a byte, for C and CUDA.
#ifndef FRAMED_KERNELS_LUMA_H
#define FRAMED_KERNELS_LUMA_H

#include "kernels/sample.h"

// Luma of pixel (x, y): of YUV the sample itself, of 10 bits the upper 8; of RGB the sum with
// `gray`, Q15 weights of R, G and B (colour_gray_weights), rounded once. `format` is src->format,
// passed separately as in sample.h.
static inline FRAMED_HD int luma_at(const struct image *src, enum pixel_format format,
                                    const int16_t gray[3], int x, int y)
{
    int sample[3] = {0};
    FRAMED_ROLLED
    for (int c = 0; c < (source_is_rgb(format) ? 3 : 1); c++) {
        const struct component k = component_of(format, c);
        sample[c] = sample_load(format, component_row(src, k, y) + (ptrdiff_t)x * k.step);
    }
    if (source_is_rgb(format))
        return (gray[0] * sample[0] + gray[1] * sample[1] + gray[2] * sample[2] + (1 << 14)) >> 15;
    return source_is_10bit(format) ? sample[0] >> 2 : sample[0];
}

#endif
