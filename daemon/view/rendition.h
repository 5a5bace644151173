// The results of an output for viewers as JPEGs, with a description. One thread at a time uses an
// object.
#ifndef FRAMED_DAEMON_VIEW_RENDITION_H
#define FRAMED_DAEMON_VIEW_RENDITION_H

#include "daemon/output/output.h"

// --- JPEGs, by libjpeg-turbo (jpeg.c)

#define JPEG_COLOUR ((struct colour){MATRIX_BT601, RANGE_FULL, SITING_UNSPECIFIED})

struct jpeg;

// Opens an encoder for pictures of that size, yuv420p or yuv444p with the colours of JPEG.
// `quality`: from 1 to 100, the best. Returns 0 or -ENOMEM.
int jpeg_open(struct jpeg **ret, enum pixel_format, int width, int height, int quality);
void jpeg_close(struct jpeg *); // accepts NULL
// Encodes the picture; the file is valid until the next call. Returns 0 or -ENOMEM.
int jpeg_encode(struct jpeg *, const struct image *, const uint8_t **file, size_t *size);

// --- a tensor as a picture for people: its elements converted back to levels

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

// Makes the picture of a result, in `to` (CHANNELS_MAX bytes a pixel) or as a view of the result.
// `plane`: that channel alone, in gray; below 0: all. False: there is no such channel.
bool tensor_image_make(struct tensor_image *ret, uint8_t *to, const struct result_format *,
                       const struct op_params *, int plane);

// --- the rendition

enum { RENDITION_FACTS_MAX = 900 };

struct rendition {       // zeroed except `plane`: closed
    int plane;           // of a tensor: the only channel shown; below 0: all
    struct image result; // the last one was like this
    // For a tensor:
    uint8_t *levels; // room for its picture
    struct tensor_image shown;
    struct op to_jpeg; // converts that picture to the colours of JPEG
    uint8_t *yuv;      // its result
    struct jpeg *jpeg;
};

// Encodes a result, made by `params` if it is a tensor, as a JPEG that is valid until the next
// call; NULL: it is a picture in the colours of JPEG. Returns 0, -ECHRNG: there is no such plane;
// or another negative errno.
int rendition_encode(struct rendition *, const struct result_format *,
                     const struct op_params *params, const uint8_t **file, size_t *size);
// Describes that result by members of a JSON object.
void rendition_describe(const struct rendition *, const struct result *,
                        const struct demand_source *, char to[RENDITION_FACTS_MAX]);
void rendition_close(struct rendition *); // accepts a closed one

#endif
