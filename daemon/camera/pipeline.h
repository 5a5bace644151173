// From a decoded frame to jobs on the backend: per output the decision whether the frame is wanted,
// a slot for its result, and one job for all that want it. Rebuilds ops and buffers where the
// geometry changes. The camera's thread calls everything here.
#ifndef FRAMED_DAEMON_CAMERA_PIPELINE_H
#define FRAMED_DAEMON_CAMERA_PIPELINE_H

#include "daemon/frame.h"
#include "daemon/mailbox.h"
#include "daemon/output.h"
#include "daemon/service/histogram.h"

enum { PIPELINE_DEPTH = 4 }; // frames of one camera in the backend at once

struct pipeline;

struct pipeline_context {
    const struct backend_driver *driver;
    struct backend *backend;
    struct mailbox *mailbox;
    struct output *outputs;
    int n_outputs;
    double fps;                // of the camera; 0 keeps all
    const _Atomic bool *stop;  // ends every wait
    struct histogram *decode;  // received to decoded
    struct histogram *process; // decoded to finished
};

int pipeline_open(struct pipeline **ret, const struct pipeline_context *);
// Offers the frame to every output. Waits only for outputs with `overflow: wait`. Returns 0, or
// what rebuilding for a new geometry failed with: every output then counted the frame as lost.
int pipeline_submit(struct pipeline *, struct frame *, int rate_num, int rate_den);
// A picture that the decoder withheld: every output counts it as damaged.
void pipeline_withheld(struct pipeline *);
// A sentence on the outputs that cannot be made from the present source, once a geometry; else
// NULL. Valid until the next pipeline_submit.
const char *pipeline_notice(struct pipeline *);
void pipeline_wake(struct pipeline *);  // any thread: lets waits look at *stop again
void pipeline_drain(struct pipeline *); // waits for the frames in flight and lets go of the buffers
void pipeline_close(struct pipeline *); // drains; accepts NULL

#endif
