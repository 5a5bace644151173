// Pictures of a camera that are kept for a while after the camera has passed them on, since clients
// may find something in them. On the host they stay where the decoder put them, in buffers that it
// can have more of. Those in surfaces of NVDEC, which has few, are copied on the device. Each
// function names its thread.
#ifndef FRAMED_DAEMON_TRANSFORM_KEPT_PICTURES_H
#define FRAMED_DAEMON_TRANSFORM_KEPT_PICTURES_H

#include "daemon/decode/frame.h"
#include "daemon/device/devices.h"

struct kept_pictures;

struct kept_pictures_options {
    const struct device_lease *lease; // holds its device until the pictures are closed
    const struct image *source;       // pictures like this one
    int most;                         // at once
    int64_t keep_ns;                  // each for so long
};

// Device memory for that, bytes; 0 where the pictures are on the host.
size_t kept_pictures_need(const struct image *source, int most);
// 0, -ENOMEM, -ENOTSUP or -EIO.
int kept_pictures_open(struct kept_pictures **ret, const struct kept_pictures_options *);
// Lets go of them; nobody has one any more that kept_pictures_find gave. Accepts NULL.
void kept_pictures_close(struct kept_pictures *);

// Camera's thread: keeps the frame's picture, which the caller still owns, in place of the oldest
// where there are too many. 1: it is the only one; 0; or -ENOMEM or -EIO.
int kept_pictures_add(struct kept_pictures *, struct frame *);
// Another owner of the picture with that pts_ns and epoch. False: it is not kept any more. Any
// thread.
bool kept_pictures_find(struct kept_pictures *, const struct frame_info *, struct frame *ret);
// Lets go of those that were kept for long enough. CLOCK_MONOTONIC: when the newest of the others
// will have been; INT64_MAX: there are none. Any thread.
int64_t kept_pictures_expire(struct kept_pictures *);

#endif
