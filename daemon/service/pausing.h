// A camera's pause or its end, requested on the control socket: `pause CAMERA`, `resume CAMERA`.
// Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_PAUSING_H
#define FRAMED_DAEMON_SERVICE_PAUSING_H

#include "daemon/supervisor/reload.h"

struct pausing {
    char camera[24];
    struct reload_request request;
    void (*done)(struct pausing *, char *reply); // takes a reply for control_reply
};

// Parses the arguments of the command. Returns the bytes read; negative: malformed.
int pausing_read(struct pausing *, const char *text);
// `kind` is EDIT_PAUSE or EDIT_RESUME. Calls `done` once, now or later.
void pausing_start(struct pausing *, enum edit_kind kind, struct reload *,
                   void (*done)(struct pausing *, char *reply));

#endif
