// What a new configuration makes of a roster: the cameras and outputs that differ are built beside
// those that run, their sinks prepared; then all of it is put in place at once, or dropped without
// a trace. Loop thread, which does nothing else in between.
#ifndef FRAMED_DAEMON_CHANGE_H
#define FRAMED_DAEMON_CHANGE_H

#include "daemon/reload.h"

struct change;

// Builds everything. 0; -EINVAL: something cannot be had, and each reason is a line in `errors`;
// -ENOMEM. `file` stands for the configuration there.
int change_open(struct change **ret, struct roster *, const struct config *, const char *file,
                FILE *errors);
// Puts it in place; cannot fail. What the configuration was read into is not needed any more.
void change_apply(struct change *, struct reload_result *);
void change_close(struct change *); // drops what was not put in place; accepts NULL

#endif
