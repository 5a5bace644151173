// A camera's pictures as JPEGs of one kind: its picture at some width, or what an output makes of
// it as its readers see it. It works where the pictures lie: on the device by a plan of its own,
// else in the thread that calls it. One thread at a time uses a rendition.
#ifndef FRAMED_DAEMON_VIEW_RENDITION_H
#define FRAMED_DAEMON_VIEW_RENDITION_H

#include "daemon/decode/frame.h"
#include "daemon/device/devices.h"
#include "daemon/view/jpeg.h"
#include "daemon/view/tensor_image.h"

enum {
    TENSOR_SIDE_MAX = 4096, // pixels; larger results are not shown
    RENDITION_FACTS_MAX = 900,
    RENDITIONS_BYTES_MAX = 256 << 20, // of all renditions together, on the host
};

struct rendition_params {
    bool tensor;         // a result of `op`, which is an output's, in its own size
    struct op_params op; // of that
    int plane;           // of that the only channel that is shown; below 0: all
    int width;           // else the picture's, pixels; a smaller picture stays as it is
    bool fine;           // of that: every sample counts, where four a pixel would be less than half
};

struct rendition {         // zeroed but for `taken`: closed
    _Atomic size_t *taken; // bytes, by all renditions; set before the first rendition_read
    size_t bytes;          // of that by this one
    struct rendition_params params;
    struct image source; // pictures like this one; PIXEL_NONE: none yet
    struct op op;        // makes the result of a picture
    void *data;          // one result
    // Where pictures lie on the device, else NULL:
    struct plan *plan;
    struct rendition_job *job;
    size_t reserved; // device memory, of the lease
    uint8_t *levels; // of a tensor: room for its picture
    struct tensor_image shown;
    struct op to_jpeg; // of a tensor: gives its picture the colours of JPEG
    uint8_t *yuv;      // the result of that
    struct jpeg *jpeg;
    char facts[RENDITION_FACTS_MAX]; // of rendition_describe
};

// Makes the result of the picture, which may be released then, anew where parameters or pictures
// differ from before. The lease is acquired where the picture lies on its device. Takes its own
// reference of a LUT. 0, or negative errno with a sentence in `why`; -EIO and -ENODEV: the device
// failed; -E2BIG: renditions would take more than RENDITIONS_BYTES_MAX; -ETIMEDOUT: the device is
// still at it, or at the picture before, and a reference of that is kept until it is through.
int rendition_read(struct rendition *, const struct rendition_params *, struct frame *,
                   const struct device_lease *, char *why, size_t size);
// Whether the device is at a picture: rendition_close would wait for it.
bool rendition_is_busy(const struct rendition *);
// After that: the JPEG, valid until the next call. Errors as rendition_read.
int rendition_encode(struct rendition *, const uint8_t **file, size_t *file_size, char *why,
                     size_t size);
// What the JPEG that was encoded last shows, as members of a JSON object without its braces. Valid
// until the next call.
const char *rendition_describe(struct rendition *);
void rendition_close(struct rendition *, const struct device_lease *); // accepts a closed one

#endif
