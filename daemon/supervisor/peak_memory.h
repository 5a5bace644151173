// A configuration beside the cameras and outputs that are still there when it takes their place:
// what has to have room at once.
#ifndef FRAMED_DAEMON_SUPERVISOR_PEAK_MEMORY_H
#define FRAMED_DAEMON_SUPERVISOR_PEAK_MEMORY_H

#include "daemon/camera/camera.h"

struct peak_memory {
    struct config config;          // shares what it has with those that it is made of
    struct output_config *outputs; // CAMERA_OUTPUTS_MAX of each camera
};

// Room for `more` cameras than `config` has. 0 or -ENOMEM.
int peak_memory_open(struct peak_memory *, const struct config *, int more);
void peak_memory_close(struct peak_memory *);
void peak_memory_add_camera(struct peak_memory *, const struct camera *);
// To the camera of that number in the configuration. What is beyond CAMERA_OUTPUTS_MAX is left out.
void peak_memory_add_output(struct peak_memory *, int camera, const struct output *);

#endif
