// Rules of a camera's URL, of what the daemon itself listens on, and of what needs a restart, which
// a row of the schema cannot say.
#ifndef FRAMED_CONFIG_CHECK_H
#define FRAMED_CONFIG_CHECK_H

#include "config/check_output.h"

// Notes what is wrong with a camera. `given` goes by the rows of camera_table.
void check_camera(struct mistakes *, struct camera_config *camera, const struct given given[],
                  const char *path);

// Notes what is wrong with the keys of the root, once everything is read and batches have their
// members, and settles what depends on the whole: threads, and `overflow` of the cameras' outputs.
// `given` goes by the rows of root_table.
void check_root(struct mistakes *, struct config *config, const struct given given[]);

// Notes each key that differs between the running configuration and the next but is not `live`.
// `given` goes by the rows of root_table.
void check_restart(struct mistakes *, const struct config *running, const struct config *next,
                   const struct given given[]);

#endif
