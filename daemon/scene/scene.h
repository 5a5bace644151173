// The analysis of one camera's pictures: light, motion and fingerprint of each
// (kernels/backend.h), and alarms. Facts for gates and consumers go into frame->info, the whole
// record into the camera's report. Runs on the device if the pictures are there, else in the
// camera's thread, which calls everything here.
#ifndef FRAMED_DAEMON_SCENE_SCENE_H
#define FRAMED_DAEMON_SCENE_SCENE_H

#include "daemon/decode/frame.h"
#include "daemon/device/devices.h"
#include "daemon/scene/scene_report.h"

struct scene;

struct scene_context {
    const struct camera_config *config; // outlives the scene, like all that is here
    const struct device_lease *lease;   // acquired whenever a picture is observed
    struct scene_report *report;
};

int scene_open(struct scene **ret, const struct scene_context *); // 0 or -ENOMEM
// Sets whether an output needs the analysis. At first none does, and pictures are analysed under
// `stats` alone. If the analysis ends by this, its alarms end and the report is emptied.
void scene_want(struct scene *, bool wanted);
// Analyses the picture and fills frame->info.scene. Skips damaged pictures, and all pictures if
// nothing needs the analysis. Takes a millisecond or two at most. If the device fails, its lease is
// stale. Returns the record, valid until the next picture; NULL: none. Accepts NULL, like
// scene_detach.
const struct scene_record *scene_observe(struct scene *, struct frame *);
// Frees what is on the lease's device. Call before the lease is released. Also for another thread,
// once the camera's has ended.
void scene_detach(struct scene *);
void scene_close(struct scene *); // after scene_detach; accepts NULL

#endif
