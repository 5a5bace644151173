// What a camera does with one picture: it claims items of each output that takes the picture, and
// starts one job on the backend that fills all of them.
//
// A set is a list of outputs with the geometry of their pictures (work/geometry.h). Jobs keep the
// set that they were started with: other outputs are filled from the next picture on, without a
// wait for the jobs of the former ones.
//
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

struct camera_work;

struct work_context {
    // The camera's: acquired whenever a frame is submitted, released only after work_drain.
    struct device_lease *lease;
    struct event_queue *events;
    struct subscriptions *subscriptions; // initial
    double fps;                          // of the camera; 0 keeps all
    struct scene *scene;                 // observes the frames kept; NULL: none
    const _Atomic bool *stop;            // ends every wait
    struct stage_watch *stages;
    struct histogram *decode;  // received to decoded
    struct histogram *process; // decoded to finished
};

int work_open(struct camera_work **ret, const struct work_context *);
// Call once *lease is acquired: its backend fills the outputs' pools from now on. If its device
// fails, waits for clients end, so that the lease can be released.
void work_attach(struct camera_work *);
// Call before *lease is released: drains, and takes back results on its device. Accepts work that
// is not attached. Also for another thread, once the camera's has ended.
void work_detach(struct camera_work *);
// Reports that opening something delayed the camera's thread by `ns` while frames arrived. For as
// long and a little longer, new frames wait for the backend and for connected clients. Has no
// effect if the delay was too short for a frame to arrive.
void work_delayed(struct camera_work *, int64_t ns);
// Offers the frame to every output; there a `lost` frame counts as damaged, or as a loss by the
// configuration if it was refused. Waits for clients under `overflow: wait`, and after
// work_delayed, which it calls for its own openings too. Returns 0, also if the device failed: its
// lease is stale then. -ENOSPC: the device has no room for this source (work_notice), the cpu has
// to do it. Else the error of rebuilding for a new geometry. On error every output has counted the
// frame as lost.
int work_submit(struct camera_work *, struct frame *);
// Switches to these outputs from the next frame on. Outputs that stay lose nothing, and frames in
// flight go on. Keeps a reference of the list; the event of a list is posted if that of the last
// frame in flight was the last reference.
void work_subscribe(struct camera_work *, struct subscriptions *);
// Returns how long pictures may still be needed for crops, ns. After the end of the input the
// work must not be drained before.
int64_t work_keeps_ns(const struct camera_work *);
// Returns a sentence on outputs that cannot be made from the present source, once per geometry;
// else NULL. Valid until the next work_submit.
const char *work_notice(struct camera_work *);
void work_wake(struct camera_work *);  // any thread: ends waits once *stop is set
void work_drain(struct camera_work *); // waits for frames in flight, frees buffers
void work_close(struct camera_work *); // drains; accepts NULL

// Submits a picture that was parked for a batch by work_submit, and had room now. Called by the
// batch's collector (output/batch.h).
void work_resume(struct batch_grant *);

#endif
