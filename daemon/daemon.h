// The running daemon: cameras, backend and sinks on one libuv loop, from start to last frame out.
#ifndef FRAMED_DAEMON_DAEMON_H
#define FRAMED_DAEMON_DAEMON_H

#include "config/config.h"
#include "daemon/base/exit_code.h"
#include "daemon/supervisor/reload.h"

struct daemon_options {
    const char *file;    // that the configuration was read from, to be read again on SIGHUP
    const char *metrics; // file that gets the counters on SIGUSR1 and at the end; NULL: none
};

// Runs until every camera has ended or a signal asks to stop, and logs what happens. `config`
// outlives the call. Returns an enum exit_code.
int daemon_run(struct config *config, const struct daemon_options *options);

#endif
