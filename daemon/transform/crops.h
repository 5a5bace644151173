// An output that shows what clients of another output of its camera found, each box as an element
// of a batch, made from the camera's own picture. A thread of its own takes the requests
// (output/crop_requests.h), looks for the picture among those that the camera's thread keeps, and
// submits one job for all boxes. A request whose picture is gone is late.
//
// Locks: the own one guards what the camera's thread and the own one share, after the transform's
// and before the pool's. Nobody holds it while a plan is opened or closed.
#ifndef FRAMED_DAEMON_TRANSFORM_CROPS_H
#define FRAMED_DAEMON_TRANSFORM_CROPS_H

#include "daemon/base/event_queue.h"
#include "daemon/decode/frame.h"
#include "daemon/device/devices.h"
#include "daemon/output/subscriptions.h"

struct crops;

struct crops_context {
    const struct subscription *subscription; // copied; its output outlives the crops
    // The camera's: acquired while pictures are prepared for.
    const struct device_lease *lease;
    struct event_queue *events;
};

// Starts the thread, which takes nothing before crops_prepare. 0 or negative errno.
int crops_open(struct crops **ret, const struct crops_context *);
void crops_close(struct crops *); // drains, and ends the thread; accepts NULL
const struct output *crops_output(const struct crops *);

// --- camera's thread
// Goes over to pictures like the frame's, num / den of them a second (0/0: not known), where those
// before were others. `notice` gets a sentence where the output cannot be made of them, or the
// device has no room. 0; -ENOSPC: the device has no room; other negative errno.
int crops_prepare(struct crops *, const struct frame *, int num, int den, char *notice,
                  size_t size);
// Keeps the picture, which the caller still owns: what is found in it may be wanted.
void crops_keep(struct crops *, struct frame *);
// Before the lease is released: waits for jobs and lets go of pictures and buffers.
void crops_drain(struct crops *);

#endif
