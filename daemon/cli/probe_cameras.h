// Probes the cameras of a configuration: opens each, reads one picture and closes it again.
#ifndef FRAMED_DAEMON_CLI_PROBE_CAMERAS_H
#define FRAMED_DAEMON_CLI_PROBE_CAMERAS_H

#include "config/config.h"

// Prints one line for each camera, in the order of the file: its stream to standard output, or the
// error to standard error. Fills in the camera's `stream`. Opens several cameras at once, each
// within its own deadlines. Does not open pipes and fifos: a reader takes their bytes for good.
// Returns EXIT_OK; EXIT_RUNTIME: a camera delivers no picture; EXIT_CONFIG: an output cannot be
// made from a camera's picture.
int probe_cameras(struct config *, const char *file);

#endif
