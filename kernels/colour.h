// What a matrix, range and siting mean in the numbers of kernels/fixed.h. All colours resolved.
#ifndef FRAMED_KERNELS_COLOUR_H
#define FRAMED_KERNELS_COLOUR_H

#include "kernels/fixed.h"

// `over` where it is specified, else `under`.
struct colour colour_override(struct colour over, struct colour under);

// Whether YUV samples of one are samples of the other: matrix and range, not siting.
bool colour_same_samples(struct colour, struct colour);

struct yuv_to_rgb colour_to_rgb(struct colour, int bits); // bits of a source sample
struct rgb_to_yuv colour_to_yuv(struct colour);
void colour_gray_weights(enum matrix, int16_t weight[3]);

// Where luma and RGB are sampled, and the chroma of a format: like luma along an axis that is not
// subsampled.
struct position luma_position(void);
struct position chroma_position_x(enum pixel_format, enum siting);
struct position chroma_position_y(enum pixel_format, enum siting);

#endif
