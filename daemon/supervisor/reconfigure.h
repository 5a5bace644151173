// What a new configuration makes of a cameras: the cameras and outputs that differ are built beside
// those that run, their sinks prepared; then all of it is put in place at once, or dropped without
// a trace. Loop thread, which does nothing else in between.
#ifndef FRAMED_DAEMON_SUPERVISOR_RECONFIGURE_H
#define FRAMED_DAEMON_SUPERVISOR_RECONFIGURE_H

#include "daemon/supervisor/cameras.h"

struct reconfigure;

// What became of cameras and outputs.
struct reload_result {
    int kept, added, removed, changed;                   // cameras
    int outputs_added, outputs_removed, outputs_changed; // of cameras that were kept
};

// Builds everything. 0; -EINVAL: something cannot be had, and each reason is a line in `errors`,
// where `mistakes` are already; -ENOMEM. `file` stands for the configuration there. Groups have
// been looked up.
int reconfigure_open(struct reconfigure **ret, struct cameras *, const struct config *,
                     const char *file, int mistakes, FILE *errors);
// Puts it in place; cannot fail. What the configuration was read into is not needed any more.
void reconfigure_apply(struct reconfigure *, struct reload_result *);
void reconfigure_close(struct reconfigure *); // drops what was not put in place; accepts NULL

#endif
