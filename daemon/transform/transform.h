// From a decoded frame to jobs on the backend: a result of each output that wants the frame,
// and one job for all of them. Makes ops and buffers anew where the geometry changes. The
// camera's thread calls everything here.
#ifndef FRAMED_DAEMON_TRANSFORM_TRANSFORM_H
#define FRAMED_DAEMON_TRANSFORM_TRANSFORM_H

#include "daemon/base/event_queue.h"
#include "daemon/base/histogram.h"
#include "daemon/base/stage_watch.h"
#include "daemon/decode/frame.h"
#include "daemon/device/devices.h"
#include "daemon/output/subscriptions.h"
#include "daemon/scene/scene.h"

struct transform;

struct transform_context {
    // The camera's: acquired whenever a frame is submitted, released only after transform_drain.
    struct device_lease *lease;
    struct event_queue *events;
    struct subscriptions *subscriptions; // at first; outlive their use
    double fps;                          // of the camera; 0 keeps all
    struct scene *scene;                 // observes what is kept; NULL: nobody does
    const _Atomic bool *stop;            // ends every wait
    struct stage_watch *stages;
    struct histogram *decode;  // received to decoded
    struct histogram *process; // decoded to finished
};

int transform_open(struct transform **ret, const struct transform_context *);
// *lease has been acquired: its backend fills the outputs' pools from now on. If its device fails,
// waits for clients end, so that the lease can be released.
void transform_attach(struct transform *);
// Before *lease is released: drains, and takes back results that lie on its device. Accepts a
// transform that is not attached. Also another thread, once the camera's has ended.
void transform_detach(struct transform *);
// The camera's thread was held up for so long by something that was opened, and frames came
// meanwhile: for as long and a little longer those that come now wait for the backend and for
// connected clients. Without effect where no frame can have come.
void transform_delayed(struct transform *, int64_t ns);
// Offers the frame to every output; one that is `lost` counts there as damaged. Waits for clients
// with `overflow: wait`, and after transform_delayed, which it also counts its own openings for.
// Returns 0, also where the device failed: its lease is stale then. -ENOSPC: the device has no room
// for this source, as transform_notice says: the cpu has to do it. Else what rebuilding for a new
// geometry failed with. On error every output has counted the frame as lost.
int transform_submit(struct transform *, struct frame *);
// Submits a picture that was parked for a batch, and that transform_submit has seen before. The
// batch's collector calls it.
void transform_resume(struct batch_grant *);
// Goes over to these outputs: waits for the frames in flight. Those that stay lose nothing.
void transform_subscribe(struct transform *, struct subscriptions *);
// How long pictures may still be wanted for crops, ns: the transform is not to be drained before,
// where the input has ended.
int64_t transform_keeps_ns(const struct transform *);
// A sentence on what cannot be made from the present source, once a geometry; else NULL. Valid
// until the next transform_submit.
const char *transform_notice(struct transform *);
void transform_wake(struct transform *); // any thread: *stop was set, ends waits
void transform_drain(
    struct transform *); // waits for the frames in flight and lets go of the buffers
void transform_close(struct transform *); // drains; accepts NULL

#endif
