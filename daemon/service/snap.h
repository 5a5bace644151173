// A JPEG requested on the control socket: `snap CAMERA[/OUTPUT[/PLANE]] WIDTH`. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_SNAP_H
#define FRAMED_DAEMON_SERVICE_SNAP_H

#include "daemon/service/views.h"

struct snap {
    struct target target;
    struct preview_asker asker;
    void (*done)(struct snap *, char *reply); // takes a reply for control_reply
};

// Parses the arguments of the command. Returns the bytes read; negative: malformed.
int snap_read(struct snap *, const char *text);
// Calls `done` once, now or within some seconds.
void snap_take(struct snap *, const struct metrics *, void (*done)(struct snap *, char *reply));

#endif
