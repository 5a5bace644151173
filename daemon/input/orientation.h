// The orientation in which a stream's pictures are shown.
#ifndef FRAMED_DAEMON_INPUT_ORIENTATION_H
#define FRAMED_DAEMON_INPUT_ORIENTATION_H

#include "kernels/image.h"

enum { ORIENTATION_MATRIX_BYTES = 9 * sizeof(int32_t) };

// Returns the enum orientation of a display matrix of libav, column by column in 1/65536, or
// -EINVAL if quarter turns and mirrors, at any scale, cannot express it.
int orientation_of(const int32_t matrix[9]);
// Returns "turned by 90 degrees clockwise" and the like.
const char *orientation_name(enum orientation);

#endif
