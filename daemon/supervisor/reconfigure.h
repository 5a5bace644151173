// Applies a new configuration to cameras: builds the changed cameras and outputs beside the running
// ones, prepares their sinks, then puts all of it in place at once, or drops it without a trace.
// Loop thread, which does nothing else in between.
#ifndef FRAMED_DAEMON_SUPERVISOR_RECONFIGURE_H
#define FRAMED_DAEMON_SUPERVISOR_RECONFIGURE_H

#include "daemon/supervisor/cameras.h"

struct reconfigure;

// Numbers of cameras and outputs by outcome.
struct reload_result {
    int kept, added, removed, changed;                   // cameras
    int outputs_added, outputs_removed, outputs_changed; // of kept cameras
};

// Builds everything; groups must have been looked up. Returns 0; -EINVAL: something is not
// available, with a line per reason in `errors`, which already has `mistakes` of them; or -ENOMEM.
// `file` names the configuration there.
int reconfigure_open(struct reconfigure **ret, struct cameras *, const struct config *,
                     const char *file, int mistakes, FILE *errors);
// Puts it in place; cannot fail. Afterwards the configuration is not needed any more.
void reconfigure_apply(struct reconfigure *, struct reload_result *);
void reconfigure_close(struct reconfigure *); // drops it unless applied; accepts NULL

#endif
