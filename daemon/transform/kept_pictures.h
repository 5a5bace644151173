// Pictures of a camera, kept for a while after the camera has passed them on: clients may still
// find something in them. Pictures on the host stay in the decoder's buffers, since it can have
// more. Pictures in NVDEC's surfaces, which are few, are copied on the device. Each function names
// its thread.
#ifndef FRAMED_DAEMON_TRANSFORM_KEPT_PICTURES_H
#define FRAMED_DAEMON_TRANSFORM_KEPT_PICTURES_H

#include "daemon/decode/frame.h"
#include "daemon/device/devices.h"

struct kept_pictures;

struct kept_pictures_options {
    const struct device_lease *lease; // holds its device until the pictures are closed
    const struct image *source;       // pictures like this one
    int most;                         // at once
    int64_t keep_ns;                  // per picture
};

// Returns the device memory needed, bytes; 0 if the pictures are on the host.
size_t kept_pictures_need(const struct image *source, int most);
// Returns 0, -ENOMEM, -ENOTSUP or -EIO.
int kept_pictures_open(struct kept_pictures **ret, const struct kept_pictures_options *);
// Releases the pictures. All those from kept_pictures_find must be released before. Accepts NULL.
void kept_pictures_close(struct kept_pictures *);

// Camera's thread: keeps the frame's picture, which the caller still owns; drops the oldest if
// there are too many. Returns 1 if it is now the only one, else 0; -ENOMEM or -EIO.
int kept_pictures_add(struct kept_pictures *, struct frame *);
// Shares the picture with that pts_ns and epoch in *ret. False: it is not kept any more. Any
// thread.
bool kept_pictures_find(struct kept_pictures *, const struct frame_info *, struct frame *ret);
// Drops pictures that were kept long enough. Returns when the newest of the others expires,
// CLOCK_MONOTONIC; INT64_MAX: there are none. Any thread.
int64_t kept_pictures_expire(struct kept_pictures *);

#endif
