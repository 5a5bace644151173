// The results of an output for viewers as JPEGs, with a description. Used by one thread at a time.
#ifndef FRAMED_DAEMON_VIEW_RENDITION_H
#define FRAMED_DAEMON_VIEW_RENDITION_H

#include "daemon/output/subscriptions.h"
#include "daemon/view/jpeg.h"
#include "kernels/ops.h"

// --- a tensor as a picture for people: its elements converted back to levels (tensor_image.c)
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

// --- the rendition
enum { RENDITION_FACTS_MAX = 900 };

struct rendition { // zeroed except `plane`: closed
    int plane;     // of a tensor: the only channel shown; below 0: all
    struct op_params params;
    struct image source; // the camera's pictures are like this one; PIXEL_NONE: none yet
    struct op op;        // as the one that makes the results
    // For a tensor:
    uint8_t *levels; // room for its picture
    struct tensor_image shown;
    struct op to_jpeg; // converts that picture to the colours of JPEG
    uint8_t *yuv;      // its result
    struct jpeg *jpeg;
    char facts[RENDITION_FACTS_MAX]; // of the last JPEG, members of a JSON object
};

// Encodes a result at `data`, made from a picture like `source`, as a JPEG that is valid until the
// next call. Returns 0, -ECHRNG: there is no such plane; or another negative errno.
int rendition_encode(struct rendition *, const struct subscription *, const struct image *source,
                     void *data, const uint8_t **file, size_t *size);
void rendition_close(struct rendition *); // accepts a closed one

#endif
