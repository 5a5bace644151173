// `framed check` on a configuration that has no mistake in itself: whether this box has the memory
// for it.
#ifndef FRAMED_DAEMON_CHECK_H
#define FRAMED_DAEMON_CHECK_H

#include "config/config.h"

// Prints what each camera needs to standard output and, where that is too much, one line to
// standard error; `file` stands for the configuration there. Works without a GPU and starts
// nothing. Returns an exit code.
int check_memory(const struct config *, const char *file);

#endif
