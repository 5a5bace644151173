// What a matrix, range and siting mean in the numbers of kernels/fixed.h. All colours resolved.
#ifndef FRAMED_KERNELS_COLOUR_H
#define FRAMED_KERNELS_COLOUR_H

#include "kernels/ops.h"

// `over` where it is specified, else `under`.
struct colour colour_override(struct colour over, struct colour under);

// Whether YUV samples of one are samples of the other: matrix and range, not siting.
bool colour_same_samples(struct colour, struct colour);

struct yuv_to_rgb colour_to_rgb(struct colour, int bits); // bits of a source sample
struct rgb_to_yuv colour_to_yuv(struct colour);
void colour_gray_weights(enum matrix, int16_t weight[3]);

// Where the chroma of 4:2:0 is sampled.
struct position siting_position_x(enum siting);
struct position siting_position_y(enum siting);

#endif
