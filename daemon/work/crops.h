// Outputs of the objects that clients found in another output of their camera: each box becomes an
// element of a batch, made from the camera's own picture. The camera's thread keeps its pictures
// for a while. A request (output/crop_requests.h), served on a thread of libuv, finds its picture
// there and becomes one job for all boxes. A request whose picture is gone is late.
#ifndef FRAMED_DAEMON_WORK_CROPS_H
#define FRAMED_DAEMON_WORK_CROPS_H

#include "daemon/base/loop.h"
#include "daemon/codec/frame.h"
#include "daemon/device/devices.h"
#include "daemon/output/subscriptions.h"

// --- all of one camera: a list. The camera's thread calls everything here.
struct crops;

// Switches to the crops of these subscriptions; crops that stay keep their pictures. Logs those
// that cannot be opened. Requests before crops_prepare are late.
void crops_subscribe(struct crops **list, const struct subscriptions *, const struct device_lease *,
                     struct event_queue *);
void crops_close(struct crops **list); // drains
// Switches to pictures like this one, num / den of them a second (0/0: unknown), if the last
// ones were different. `notice` gets a sentence if an output cannot be made from them or the device
// has no room. Returns 0, -ENOSPC (the device has no room) or another negative errno. The lease is
// acquired from here to crops_drain.
int crops_prepare(struct crops *list, const struct image *, int num, int den, char *notice,
                  size_t size);
// Keeps the picture, which the caller still owns, for requests to come, for crops whose source
// output was offered it and did not thin it out.
void crops_keep(struct crops *list, struct frame *);
// Returns the longest time that any of them keeps a picture, ns.
int64_t crops_keep_ns(const struct crops *list);
// Waits for jobs and releases pictures and buffers. Call before the lease is released.
void crops_drain(struct crops *list);

// --- the kept pictures (kept_pictures.c)
// Pictures of a camera, kept for a while after the camera has passed them on: clients may still
// find something in them. Pictures on the host stay in the decoder's buffers, since it can have
// more. Pictures in NVDEC's surfaces, which are few, are copied on the device. Each function names
// its thread.
struct kept_pictures;

// Returns the device memory needed, bytes; 0 if the pictures are on the host.
size_t kept_pictures_need(const struct image *source, int most);
// For pictures like `source`: at most `most` at once, each for `keep_ns`. The lease holds its
// device until they are closed. Returns 0, -ENOMEM, -ENOTSUP or -EIO.
int kept_pictures_open(struct kept_pictures **ret, const struct device_lease *,
                       const struct image *source, int most, int64_t keep_ns);
// Releases the pictures. All those from kept_pictures_find must be released before. Accepts NULL.
void kept_pictures_close(struct kept_pictures *);

// Camera's thread: keeps the frame's picture, which the caller still owns; drops pictures that were
// kept long enough, and the oldest if there are too many. Returns 0, -ENOMEM or -EIO.
int kept_pictures_add(struct kept_pictures *, struct frame *);
// Shares the picture with that pts_ns and epoch in *ret. False: it is not kept any more. Any
// thread.
bool kept_pictures_find(struct kept_pictures *, const struct frame_info *, struct frame *ret);

#endif
