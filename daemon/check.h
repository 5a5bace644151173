// `framed check` on a configuration that has no mistake in itself: whether this box has what it
// takes.
#ifndef FRAMED_DAEMON_CHECK_H
#define FRAMED_DAEMON_CHECK_H

#include "config/config.h"

// Prints to standard output that it is good, unless it is not, and what memory each camera needs;
// where that is too much, one line to standard error. `file` stands for the configuration. Works
// without a GPU, which may be another box's, and says where one is missing; but a backend that is
// not in this build is refused. Starts nothing. Returns an exit code.
int check_box(const struct config *, const char *file);

#endif
