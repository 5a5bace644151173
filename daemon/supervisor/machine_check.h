// Mistakes of a configuration that its text alone does not show: what this process, or this
// machine, does not have. Each of the first three may be the `judge` of config_load_with.
#ifndef FRAMED_DAEMON_SUPERVISOR_MACHINE_CHECK_H
#define FRAMED_DAEMON_SUPERVISOR_MACHINE_CHECK_H

#include "config/config.h"
#include "kernels/image.h"

// Descriptors of `pipe:N` that the process was not started with.
void machine_check_descriptors(struct mistakes *, const struct config *);
// These, and processors of `cpu.pin` of which the process may use none.
void machine_check_process(struct mistakes *, const struct config *);
// These, and whatever keeps a camera or an output from working here, as far as that shows without
// the camera: demuxers and their options, geometry for a `picture` that is given, groups, folders.
void machine_check_machine(struct mistakes *, const struct config *);
// Outputs that cannot be made where `picture` is auto. `mistakes`: of a file's pictures, which its
// camera's `stream` tells; `warnings`: of the size that is assumed for a camera without a `stream`,
// whose own may be larger.
void machine_check_auto_pictures(struct mistakes *mistakes, struct mistakes *warnings,
                                 const struct config *);
// Outputs that cannot be made of pictures like this one, which the camera gives.
void machine_check_picture(struct mistakes *, const struct camera_config *, const struct image *);

// Whether the service's unit makes the folder: /run/framed, /var/lib/framed and those of instances
// (/run/framed-NAME). They count as present.
bool machine_check_is_made_by_unit(const char *folder);

#endif
