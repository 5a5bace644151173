// Pictures of a camera that are kept for a while after the camera has passed them on, since clients
// may find something in them. They lie where the decoder put them, in buffers that it can have more
// of. Thread-safe; each function names its thread.
#ifndef FRAMED_DAEMON_TRANSFORM_KEPT_PICTURES_H
#define FRAMED_DAEMON_TRANSFORM_KEPT_PICTURES_H

#include "daemon/decode/frame.h"

struct kept_pictures;

// At most `most` pictures, each for `keep_ns`. 0 or -ENOMEM.
int kept_pictures_open(struct kept_pictures **ret, int most, int64_t keep_ns);
void kept_pictures_close(struct kept_pictures *); // lets go of them; accepts NULL

// Camera's thread: keeps the frame's picture, which the caller still owns, in place of the oldest
// where there are too many. True: it is the only one.
bool kept_pictures_add(struct kept_pictures *, struct frame *);
// Another owner of the picture with that pts_ns and epoch. False: it is not kept any more. Any
// thread.
bool kept_pictures_find(struct kept_pictures *, const struct frame_info *, struct frame *ret);
// Lets go of those that were kept for long enough. CLOCK_MONOTONIC: when the newest of the others
// will have been; INT64_MAX: there are none. Any thread.
int64_t kept_pictures_expire(struct kept_pictures *);

#endif
