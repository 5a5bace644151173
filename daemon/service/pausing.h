// A camera's pause or its end, that the control socket asks for: `pause CAMERA`, `resume CAMERA`.
// Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_PAUSING_H
#define FRAMED_DAEMON_SERVICE_PAUSING_H

#include "daemon/supervisor/reload.h"

struct pausing {
    char camera[24];
    struct reload_request request;
    void (*done)(struct pausing *, char *reply); // as control_reply takes it
};

// Reads what is behind the word. Returns the bytes that it took; negative: it is wrong.
int pausing_read(struct pausing *, const char *text);
// `kind` is EDIT_PAUSE or EDIT_RESUME. `done` follows once, now or later.
void pausing_start(struct pausing *, enum edit_kind kind, struct reload *,
                   void (*done)(struct pausing *, char *reply));

#endif
