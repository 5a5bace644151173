// `framed check` for a configuration without mistakes: checks that this machine has the memory, the
// devices and the version of the kernels that it requires.
#ifndef FRAMED_DAEMON_CLI_CHECK_H
#define FRAMED_DAEMON_CLI_CHECK_H

#include "config/config.h"

// Prints to standard output that the configuration is good, if it is, and the memory that each
// camera needs; if that is too much, one line to standard error. `file` names the configuration.
// Works without a GPU, which another machine may have, and reports a missing one; refuses a backend
// that is not in this build. With `probes` opens all cameras first and plans for their pictures;
// otherwise opens none. Returns an exit code.
int check_box(struct config *, const char *file, bool probes);

// Returns a sentence, starting with the place, if the file contains a secret and others than the
// owner and the group may read it. The caller frees it. NULL: no.
char *check_readers(const struct config *);

// Returns EXIT_OK if FRAMED_CPU is unset or names a version of the kernels that this CPU runs;
// otherwise EXIT_USAGE, with a line on stderr that lists the versions.
int check_cpu(const char *command);

#endif
