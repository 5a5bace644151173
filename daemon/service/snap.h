// A JPEG that the control socket asks for: `snap CAMERA[/OUTPUT[/PLANE]] WIDTH`. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_SNAP_H
#define FRAMED_DAEMON_SERVICE_SNAP_H

#include "daemon/service/target.h"

struct snap {
    struct target target;
    struct preview_asker asker;
    void (*done)(struct snap *, char *reply); // as control_reply takes it
};

// Reads what is behind the word. Returns the bytes that it took; negative: it is wrong.
int snap_read(struct snap *, const char *text);
// `done` follows once, now or within some seconds.
void snap_take(struct snap *, const struct metrics *, void (*done)(struct snap *, char *reply));

#endif
