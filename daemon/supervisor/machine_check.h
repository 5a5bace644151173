// Mistakes in a configuration that its text alone does not show: this process or this machine lacks
// something. Each of the first three can be the `judge` of config_load_with.
#ifndef FRAMED_DAEMON_SUPERVISOR_MACHINE_CHECK_H
#define FRAMED_DAEMON_SUPERVISOR_MACHINE_CHECK_H

#include "config/config.h"
#include "kernels/image.h"

// Notes descriptors of `pipe:N` that the process was not started with.
void machine_check_descriptors(struct mistakes *, const struct config *);
// Notes these, a `cpu.pin` none of whose processors the process may use, and names of decoders that
// libavcodec does not know.
void machine_check_process(struct mistakes *, const struct config *);
// Notes these, and everything that keeps a camera or output from working here, as far as it shows
// without opening the camera: demuxers and their options, geometry if `picture` is set, groups and
// folders.
void machine_check_machine(struct mistakes *, const struct config *);
// Notes outputs that the picture assumed for `picture: auto` cannot fill; the camera's own may be
// larger.
void machine_check_auto_pictures(struct mistakes *warnings, const struct config *);
// Notes outputs that cannot be made from a picture of the camera.
void machine_check_picture(struct mistakes *, const struct camera_config *, const struct image *);

// Whether the service's unit makes the folder: /run/framed, /var/lib/framed and those of instances
// (/run/framed-NAME). Such a folder counts as present.
bool machine_check_is_made_by_unit(const char *folder);

#endif
