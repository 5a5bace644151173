// A configuration beside the cameras and outputs that are still there when it takes their place:
// what has to have room at once.
#ifndef FRAMED_DAEMON_OVERLAP_H
#define FRAMED_DAEMON_OVERLAP_H

#include "daemon/camera/camera.h"

struct overlap {
    struct config config;          // shares what it has with those that it is made of
    struct output_config *outputs; // PLAN_OPS_MAX of each camera
};

// Room for `more` cameras than `config` has. 0 or -ENOMEM.
int overlap_open(struct overlap *, const struct config *, int more);
void overlap_close(struct overlap *);
void overlap_add_camera(struct overlap *, const struct camera *);
// To the camera of that number in the configuration. What is beyond PLAN_OPS_MAX is left out.
void overlap_add_output(struct overlap *, int camera, const struct output *);

#endif
