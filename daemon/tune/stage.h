// Where trials take place: framed itself as a child, in a rehearsal of the configuration, with this
// process as the client of all its rings. One thread.
#ifndef FRAMED_DAEMON_TUNE_STAGE_H
#define FRAMED_DAEMON_TUNE_STAGE_H

#include <stddef.h>

#include "daemon/tune/figures.h"
#include "daemon/tune/rehearsal.h"

struct stage {
    struct rehearsal rehearsal;
    char folder[64], log[96], clip[4096];
    int cameras, outputs;
    double seconds; // of a trial
    enum objective objective;
    // Of the last trial that failed: for people, and the child's exit code or -1.
    char complaint[400];
    int code;
};

// For trials of configurations like this one. `clip` may be NULL. 0 or negative errno.
int stage_open(struct stage *, const struct config *, const char *clip, bool live, double seconds);
void stage_close(struct stage *); // accepts a zeroed one
// One trial of a configuration's text. 0; -EINTR where a signal asks to stop, with the child gone
// already; -ENOEXEC: it does not run, and `complaint` says why; other negative errno.
int stage_trial(struct stage *, const char *text, size_t length, struct figures *ret);

#endif
