// An output of the objects that clients found in another output of its camera: each box becomes an
// element of a batch, made from the camera's own picture. Its own thread takes the requests
// (output/crop_requests.h), finds the picture among those kept by the camera's thread, and submits
// one job for all boxes. A request whose picture is gone is late.
//
// Locks: its own lock guards data shared by the two threads. It is taken after the transform's lock
// and before the pool's, and never held while a plan is opened or closed.
#ifndef FRAMED_DAEMON_TRANSFORM_CROPS_H
#define FRAMED_DAEMON_TRANSFORM_CROPS_H

#include "daemon/base/loop.h"
#include "daemon/decode/frame.h"
#include "daemon/device/devices.h"
#include "daemon/output/subscriptions.h"

struct crops;

struct crops_context {
    const struct subscription *subscription; // copied; its output outlives the crops
    // The camera's: acquired from crops_prepare to crops_drain.
    const struct device_lease *lease;
    struct event_queue *events;
};

// Starts the thread; requests before crops_prepare are late. Returns 0 or a negative errno.
int crops_open(struct crops **ret, const struct crops_context *);
void crops_close(struct crops *); // drains, and ends the thread; accepts NULL
const struct output *crops_output(const struct crops *);

// --- camera's thread
// Switches to pictures like the frame's, num / den of them a second (0/0: unknown), if the last
// ones were different. `notice` gets a sentence if the output cannot be made from them or the
// device has no room. Returns 0, -ENOSPC (the device has no room) or another negative errno.
int crops_prepare(struct crops *, const struct frame *, int num, int den, char *notice,
                  size_t size);
// Keeps the picture, which the caller still owns, for requests to come.
void crops_keep(struct crops *, struct frame *);
// Waits for jobs and releases pictures and buffers. Call before the lease is released.
void crops_drain(struct crops *);

#endif
