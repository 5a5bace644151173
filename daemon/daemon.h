// The running daemon: cameras, backend and sinks on one libuv loop, from start to last frame out.
#ifndef FRAMED_DAEMON_DAEMON_H
#define FRAMED_DAEMON_DAEMON_H

#include "config/config.h"

enum exit_code {
    EXIT_OK = 0,
    EXIT_RUNTIME = 1,
    EXIT_USAGE = 2,
    EXIT_NO_DEVICE = 69, // a device that the configuration demands is missing
    EXIT_CONFIG = 78,
};

struct daemon_options {
    const char *metrics; // file that gets the counters on SIGUSR1 and at the end; NULL: none
};

// Runs until every camera has ended or a signal asks to stop, and logs what happens. `config`
// outlives the call. Returns an enum exit_code.
int daemon_run(const struct config *config, const struct daemon_options *options);

#endif
