// From a decoded frame to jobs on the backend: a slot for the result of each output that wants the
// frame, and one job for all of them. Rebuilds ops and buffers where the geometry changes. The
// camera's thread calls everything here.
#ifndef FRAMED_DAEMON_CAMERA_PIPELINE_H
#define FRAMED_DAEMON_CAMERA_PIPELINE_H

#include "daemon/camera/heartbeat.h"
#include "daemon/engine.h"
#include "daemon/frame.h"
#include "daemon/mailbox.h"
#include "daemon/output.h"
#include "daemon/service/histogram.h"

enum { PIPELINE_DEPTH = 4 }; // the most frames of one camera in a backend at once

// How many there are in this backend: more would only hold memory.
int pipeline_depth(const struct backend_driver *);

struct pipeline;

struct pipeline_context {
    struct engine *engine;
    // The camera's: joined whenever a frame is submitted, and left only after pipeline_drain.
    struct engine_use *use;
    struct mailbox *mailbox;
    struct outputs outputs;   // at first
    double fps;               // of the camera; 0 keeps all
    const _Atomic bool *stop; // ends every wait
    struct heartbeat *heartbeat;
    struct histogram *decode;  // received to decoded
    struct histogram *process; // decoded to finished
};

int pipeline_open(struct pipeline **ret, const struct pipeline_context *);
// *use has joined a side: if it fails, waits for clients end, so that the side can be left.
void pipeline_join(struct pipeline *);
// The camera's thread was held up for so long by something that was opened, and frames came
// meanwhile: for as long and a little longer those that come now wait for the backend and for
// connected clients. Without effect where no frame can have come.
void pipeline_held_up(struct pipeline *, int64_t ns);
// Offers the frame to every output. Waits for clients with `overflow: wait`, and after
// pipeline_held_up, which it also counts its own openings for. Returns 0, also
// where the device failed: the engine knows then. -ENOSPC: the device has no room for this source,
// as pipeline_notice says: the cpu has to do it. Else what rebuilding for a new geometry failed
// with. On error every output has counted the frame as lost.
int pipeline_submit(struct pipeline *, struct frame *, int rate_num, int rate_den);
// Goes over to these outputs: waits for the frames in flight. Those that stay lose nothing.
void pipeline_change(struct pipeline *, const struct outputs *);
// A picture that the decoder withheld: every output counts it as damaged.
void pipeline_withheld(struct pipeline *);
// A sentence on what cannot be made from the present source, once a geometry; else NULL. Valid
// until the next pipeline_submit.
const char *pipeline_notice(struct pipeline *);
void pipeline_wake(struct pipeline *);  // any thread: *stop was set, ends waits
void pipeline_drain(struct pipeline *); // waits for the frames in flight and lets go of the buffers
void pipeline_close(struct pipeline *); // drains; accepts NULL

#endif
