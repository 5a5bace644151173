// How a stream says that its pictures are to be turned.
#ifndef FRAMED_DAEMON_INPUT_ORIENTATION_H
#define FRAMED_DAEMON_INPUT_ORIENTATION_H

#include "kernels/image.h"

enum { ORIENTATION_MATRIX_BYTES = 9 * sizeof(int32_t) };

// Of a display matrix as libav has it, column by column in 1/65536: enum orientation, or -EINVAL
// where quarter turns and mirrors, of any scale, do not make it.
int orientation_of(const int32_t matrix[9]);
// "turned by 90 degrees clockwise" and the like.
const char *orientation_name(enum orientation);

#endif
