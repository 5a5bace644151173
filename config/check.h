// Rules of a camera's URL, of the daemon's own sockets and of keys that need a restart, which a row
// of the schema cannot express.
#ifndef FRAMED_CONFIG_CHECK_H
#define FRAMED_CONFIG_CHECK_H

#include "config/check_output.h"

// Notes the mistakes of a camera. `given` is indexed by the rows of camera_table.
void check_camera(struct mistakes *, struct camera_config *camera, const struct given given[],
                  const char *path);

// Notes the mistakes in the root's keys, after all keys are read and batches have their members.
// Chooses the values that depend on the whole: threads, and `overflow` of the cameras' outputs.
// `given` is indexed by the rows of root_table.
void check_root(struct mistakes *, struct config *config, const struct given given[]);

// Notes each key that differs between the running configuration and the next but is not `live`.
// `given` is indexed by the rows of root_table.
void check_restart(struct mistakes *, const struct config *running, const struct config *next,
                   const struct given given[]);

#endif
