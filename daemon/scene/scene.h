// The analysis of one camera's pictures: light, motion and fingerprint of each
// (kernels/analysis.h), and alarms. What gates and consumers ask for goes into frame->info, the
// whole record into the camera's report. It works on the device where pictures lie there, else in
// the camera's thread, which calls everything here.
#ifndef FRAMED_DAEMON_SCENE_SCENE_H
#define FRAMED_DAEMON_SCENE_SCENE_H

#include "daemon/decode/frame.h"
#include "daemon/device/devices.h"
#include "daemon/scene/scene_report.h"

struct scene;

struct scene_context {
    const struct camera_config *config; // outlives the scene, as does all that is here
    const struct device_lease *lease;   // acquired whenever a picture is observed
    struct scene_report *report;
};

int scene_open(struct scene **ret, const struct scene_context *); // 0 or -ENOMEM
// Whether an output asks for what is seen; at first none does, and pictures are analysed under
// `stats` alone. Where the analysis ends by that, its alarms do too, and the report is emptied.
void scene_want(struct scene *, bool wanted);
// Analyses the picture and fills frame->info.scene; a damaged one is left out, and so is every
// picture where nobody asks. Takes a millisecond or two at most. If the device fails, its lease is
// stale.
// Returns what it found, which is valid until the next picture; NULL: nothing. Accepts NULL, as the
// next.
const struct scene_record *scene_observe(struct scene *, struct frame *);
// Before the lease is released: lets go of what is on its device. Also another thread, once the
// camera's has ended.
void scene_detach(struct scene *);
void scene_close(struct scene *); // after scene_detach; accepts NULL

#endif
