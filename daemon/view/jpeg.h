// JPEGs of pictures, by libjpeg-turbo. An encoder is used by one thread.
#ifndef FRAMED_DAEMON_VIEW_JPEG_H
#define FRAMED_DAEMON_VIEW_JPEG_H

#include "kernels/image.h"

struct jpeg;

// Opens an encoder for pictures of that size, yuv420p or yuv444p with the colours of JPEG
// (JPEG_COLOUR). `quality`: from 1 to 100, the best. Returns 0 or -ENOMEM.
int jpeg_open(struct jpeg **ret, enum pixel_format, int width, int height, int quality);
void jpeg_close(struct jpeg *); // accepts NULL
// Encodes the picture; the file is valid until the next call. Returns 0 or -ENOMEM.
int jpeg_encode(struct jpeg *, const struct image *, const uint8_t **file, size_t *size);

#define JPEG_COLOUR ((struct colour){MATRIX_BT601, RANGE_FULL, SITING_UNSPECIFIED})

#endif
