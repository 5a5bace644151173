// A result of an output as a picture that people can look at: the elements of a tensor brought back
// to the levels that they were made of, and what values each channel has. Pure.
#ifndef FRAMED_DAEMON_VIEW_TENSOR_IMAGE_H
#define FRAMED_DAEMON_VIEW_TENSOR_IMAGE_H

#include "kernels/ops.h"

enum { CHANNELS_MAX = 3 };

// The elements of one channel, as the output has them.
struct channel {
    const char *name; // "r", "y"
    double min, mean, max;
};

struct tensor_image {
    struct image image; // gbrp or gray; of the op `yuv` its own format or yuv444p
    struct channel channel[CHANNELS_MAX];
    int n; // channels
};

// Bytes that the picture of such results takes.
size_t tensor_image_bytes(const struct op *);
// Of a result of the op at `data`, into `to` or as a view of `data`. `plane`: that channel alone,
// in gray; below 0: all. False: there is no such channel.
bool tensor_image_make(struct tensor_image *ret, uint8_t *to, const struct op *,
                       const struct op_params *, void *data, int plane);

#endif
