// Turns a decoded frame into a job on the backend: claims a result of each output that takes the
// frame, and submits one job for all of them. Rebuilds ops and buffers when the geometry changes.
// Camera's thread only, unless stated otherwise.
#ifndef FRAMED_DAEMON_WORK_WORK_H
#define FRAMED_DAEMON_WORK_WORK_H

#include "daemon/base/counters.h"
#include "daemon/base/loop.h"
#include "daemon/base/stage_watch.h"
#include "daemon/codec/frame.h"
#include "daemon/device/devices.h"
#include "daemon/output/output.h"
#include "daemon/output/subscriptions.h"
#include "daemon/scene/scene.h"

struct transform;

struct transform_context {
    // The camera's: acquired whenever a frame is submitted, released only after transform_drain.
    struct device_lease *lease;
    struct event_queue *events;
    struct subscriptions *subscriptions; // initial; outlive their use
    double fps;                          // of the camera; 0 keeps all
    struct scene *scene;                 // observes the frames kept; NULL: none
    const _Atomic bool *stop;            // ends every wait
    struct stage_watch *stages;
    struct histogram *decode;  // received to decoded
    struct histogram *process; // decoded to finished
};

int transform_open(struct transform **ret, const struct transform_context *);
// Call once *lease is acquired: its backend fills the outputs' pools from now on. If its device
// fails, waits for clients end, so that the lease can be released.
void transform_attach(struct transform *);
// Call before *lease is released: drains, and takes back results on its device. Accepts a transform
// that is not attached. Also for another thread, once the camera's has ended.
void transform_detach(struct transform *);
// Reports that opening something delayed the camera's thread by `ns` while frames arrived. For as
// long and a little longer, new frames wait for the backend and for connected clients. Has no
// effect if the delay was too short for a frame to arrive.
void transform_delayed(struct transform *, int64_t ns);
// Offers the frame to every output; there a `lost` frame counts as damaged, or as a loss by the
// configuration if it was refused. Waits for clients under `overflow: wait`, and after
// transform_delayed, which it calls for its own openings too. Returns 0, also if the device failed:
// its lease is stale then. -ENOSPC: the device has no room for this source (transform_notice), the
// cpu has to do it. Else the error of rebuilding for a new geometry. On error every output has
// counted the frame as lost.
int transform_submit(struct transform *, struct frame *);
// Submits a picture that was parked for a batch by transform_submit. Called by the batch's
// collector.
void transform_resume(struct batch_grant *);
// Switches to these outputs; waits for the frames in flight. Outputs that stay lose nothing.
void transform_subscribe(struct transform *, struct subscriptions *);
// Returns how long pictures may still be needed for crops, ns. After the end of the input the
// transform must not be drained before.
int64_t transform_keeps_ns(const struct transform *);
// Returns a sentence on outputs that cannot be made from the present source, once per geometry;
// else NULL. Valid until the next transform_submit.
const char *transform_notice(struct transform *);
void transform_wake(struct transform *);  // any thread: ends waits once *stop is set
void transform_drain(struct transform *); // waits for frames in flight, frees buffers
void transform_close(struct transform *); // drains; accepts NULL

// --- the collector: the thread of one batch
// It submits parked pictures once there is room for them, and closes the batch when its wait is
// over (output/batch.h).
struct collector;

// Starts the thread of a batch's own output, which outlives it. Loop thread. 0 or negative errno.
int collector_open(struct collector **ret, struct output *, struct event_queue *);
// Requests the thread's end, once the batch has no members. True: it has ended, and collector_close
// does not block. Accepts NULL.
bool collector_stop(struct collector *);
// Waits for the thread to end. Accepts NULL.
void collector_close(struct collector *);

#endif
