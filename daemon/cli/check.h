// `framed check` on a configuration that has no mistake: whether this box has what it takes, the
// memory, the devices and the version of the kernels that is asked for.
#ifndef FRAMED_DAEMON_CLI_CHECK_H
#define FRAMED_DAEMON_CLI_CHECK_H

#include "config/config.h"

// Prints to standard output that it is good, unless it is not, and the memory that each camera
// needs; if that is too much, one line to standard error. `file` names the configuration. Works
// without a GPU, which may be another box's, and says where one is missing; a backend that is not
// in this build is refused. With `probes` it opens all cameras first and plans for their pictures;
// else it opens none. Returns an exit code.
int check_box(struct config *, const char *file, bool probes);

// Whether others than the owner and the group may read the file, and a secret stands in it: one
// sentence that the caller frees, behind its place; NULL: no.
char *check_readers(const struct config *);

// Whether the environment's FRAMED_CPU, where it is set, names a version of the kernels that this
// CPU runs. EXIT_OK, or EXIT_USAGE and a line on stderr that says which there are.
int check_cpu(const char *command);

#endif
