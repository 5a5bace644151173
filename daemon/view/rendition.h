// A camera's pictures as JPEGs of one kind: its picture at some width, or an output's result as its
// readers see it. Works where the pictures are: on the device with a separate plan, else in the
// calling thread. Used by one thread at a time.
#ifndef FRAMED_DAEMON_VIEW_RENDITION_H
#define FRAMED_DAEMON_VIEW_RENDITION_H

#include "daemon/codec/frame.h"
#include "daemon/device/devices.h"
#include "daemon/view/jpeg.h"
#include "kernels/ops.h"

// --- a result of an output as a picture for people
// The elements of a tensor converted back to levels, and the values of each channel. Pure.
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
enum {
    TENSOR_SIDE_MAX = 4096, // pixels; larger results are not shown
    RENDITION_FACTS_MAX = 900,
    RENDITIONS_BYTES_MAX = 256 << 20, // of all renditions together, on the host
};

struct rendition_params {
    bool tensor;         // a result of an output's `op`, in its own size; else the picture
    struct op_params op; // with `tensor`
    int plane;           // with `tensor`: the only channel shown; below 0: all
    int width;           // of the picture, pixels; a smaller picture stays as it is
    bool fine;           // of the picture: uses all samples if bilinear would use less than half
};

struct rendition {         // zeroed except `taken`: closed
    _Atomic size_t *taken; // bytes, by all renditions; set before the first rendition_read
    size_t bytes;          // its own part of that
    struct rendition_params params;
    struct image source; // pictures like this one; PIXEL_NONE: none yet
    struct op op;        // makes the result from a picture
    void *data;          // one result
    // For pictures on the device, else NULL:
    struct plan *plan;
    struct rendition_job *job;
    size_t reserved; // bytes of the lease's device
    uint8_t *levels; // of a tensor: room for its picture
    struct tensor_image shown;
    struct op to_jpeg; // of a tensor: converts its picture to the colours of JPEG
    uint8_t *yuv;      // its result
    struct jpeg *jpeg;
    char facts[RENDITION_FACTS_MAX]; // of rendition_describe
};

// Makes the result of the picture, which may be released then; rebuilds its buffers if parameters
// or pictures differ from before. The lease is acquired if the picture is on its device. Takes its
// own reference of a LUT. Returns 0, or a negative errno with a sentence in `why`; -EIO and
// -ENODEV: the device failed; -E2BIG: too large, or beyond RENDITIONS_BYTES_MAX; -ETIMEDOUT: the
// device is busy with this or the last picture, and keeps a reference until it is done.
int rendition_read(struct rendition *, const struct rendition_params *, struct frame *,
                   const struct device_lease *, char *why, size_t size);
// True while the device is busy with a picture: rendition_close would wait for it.
bool rendition_is_busy(const struct rendition *);
// Encodes the result as a JPEG, valid until the next call. Errors as rendition_read.
int rendition_encode(struct rendition *, const uint8_t **file, size_t *file_size, char *why,
                     size_t size);
// Describes the last JPEG, as members of a JSON object without its braces. Valid until the next
// call.
const char *rendition_describe(struct rendition *);
void rendition_close(struct rendition *, const struct device_lease *); // accepts a closed one

#endif
