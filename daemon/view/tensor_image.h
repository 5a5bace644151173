// A result of an output as a picture for people: the elements of a tensor converted back to levels,
// and the values of each channel. Pure.
#ifndef FRAMED_DAEMON_VIEW_TENSOR_IMAGE_H
#define FRAMED_DAEMON_VIEW_TENSOR_IMAGE_H

#include "kernels/ops.h"

enum { CHANNELS_MAX = 3 };

// The values of one channel, as in the output.
struct channel {
    const char *name; // "r", "y"
    double min, mean, max;
};

struct tensor_image {
    struct image image; // gbrp or gray; for op `yuv` its own format or yuv444p
    struct channel channel[CHANNELS_MAX];
    int n; // channels
};

// Returns the bytes of the picture of such results.
size_t tensor_image_bytes(const struct op *);
// Makes the picture of a result of the op at `data`, in `to` or as a view of `data`. `plane`: that
// channel alone, in gray; below 0: all. False: there is no such channel.
bool tensor_image_make(struct tensor_image *ret, uint8_t *to, const struct op *,
                       const struct op_params *, void *data, int plane);

#endif
