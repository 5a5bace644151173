// What the cameras of a configuration are: opens all of them, reads a picture of each and closes
// them again.
#ifndef FRAMED_DAEMON_CLI_PROBE_H
#define FRAMED_DAEMON_CLI_PROBE_H

#include "config/config.h"

// Prints one line for each camera, in the order of the file: to standard output what it is, or to
// standard error what is wrong. Several are opened at once, each within its own deadlines. Pipes
// and fifos stay closed: what is read from one is gone. EXIT_OK; EXIT_RUNTIME: a camera gives no
// picture; EXIT_CONFIG: an output cannot be made of one that does.
int probe_cameras(const struct config *, const char *file);

#endif
