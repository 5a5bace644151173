// Matrix, range and siting in the numbers of kernels/fixed.h. All colours are resolved.
#ifndef FRAMED_KERNELS_COLOUR_H
#define FRAMED_KERNELS_COLOUR_H

#include "kernels/fixed.h"

// Each member of `over`, or of `under` if it is unspecified.
struct colour colour_override(struct colour over, struct colour under);

// True if both have the same matrix and range; siting is ignored.
bool colour_same_samples(struct colour, struct colour);

struct yuv_to_rgb colour_to_rgb(struct colour, int bits); // bits of a source sample
struct rgb_to_yuv colour_to_yuv(struct colour);
void colour_gray_weights(enum matrix, int16_t weight[3]);

// Sampling positions of luma and RGB, and of a format's chroma, which equals luma's along an axis
// without subsampling.
struct position luma_position(void);
struct position chroma_position_x(enum pixel_format, enum siting);
struct position chroma_position_y(enum pixel_format, enum siting);

#endif
