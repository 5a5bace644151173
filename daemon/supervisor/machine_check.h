// Finds mistakes in a configuration that its text does not show: this process or this machine lacks
// something. Each of the first three functions can be the `judge` of config_load_with.
#ifndef FRAMED_DAEMON_SUPERVISOR_MACHINE_CHECK_H
#define FRAMED_DAEMON_SUPERVISOR_MACHINE_CHECK_H

#include "config/config.h"
#include "kernels/image.h"

// Notes descriptors of `pipe:N` that the process was not started with.
void machine_check_descriptors(struct mistakes *, const struct config *);
// Notes these, a `cpu.pin` without any processor that the process may use, and decoders that
// libavcodec does not have.
void machine_check_process(struct mistakes *, const struct config *);
// Notes these, and everything that keeps a camera or output from working here, as far as it can be
// found without opening the camera: demuxers and their options, geometry if `picture` is set,
// groups and folders.
void machine_check_machine(struct mistakes *, const struct config *);
// Notes outputs that cannot be made from the picture assumed for `picture: auto`; the camera's own
// may be larger.
void machine_check_auto_pictures(struct mistakes *warnings, const struct config *);
// Notes outputs that cannot be made from a picture of the camera.
void machine_check_picture(struct mistakes *, const struct camera_config *, const struct image *);

// True if the service's unit makes the folder: /run/framed, /var/lib/framed and the folders of
// instances (/run/framed-NAME). Such a folder counts as present.
bool machine_check_is_made_by_unit(const char *folder);

#endif
