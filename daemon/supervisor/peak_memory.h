// A configuration together with cameras and outputs that still exist when it takes their place: all
// need room at once.
#ifndef FRAMED_DAEMON_SUPERVISOR_PEAK_MEMORY_H
#define FRAMED_DAEMON_SUPERVISOR_PEAK_MEMORY_H

#include "daemon/camera/camera.h"

struct peak_memory {
    struct config config;          // shares data with the configurations it is made from
    struct output_config *outputs; // CAMERA_OUTPUTS_MAX per camera
};

// Makes room for `more` cameras than `config` has. Returns 0 or -ENOMEM.
int peak_memory_open(struct peak_memory *, const struct config *, int more);
void peak_memory_close(struct peak_memory *);
void peak_memory_add_camera(struct peak_memory *, const struct camera *);
// Adds to the camera of that number in the configuration, up to CAMERA_OUTPUTS_MAX outputs.
void peak_memory_add_output(struct peak_memory *, int camera, const struct output *);

#endif
