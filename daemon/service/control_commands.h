// The commands of the control socket. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_CONTROL_COMMANDS_H
#define FRAMED_DAEMON_SERVICE_CONTROL_COMMANDS_H

#include "daemon/base/loop.h"
#include "daemon/service/control.h"
#include "daemon/service/metrics.h"

struct request;

struct control_commands {
    struct reload *reload;
    struct work_queue *work;
    const struct status *status;
    void (*snapshot)(void *opaque, struct metrics *ret); // returns the present state of the daemon
    void *opaque;
    // Requests with a file; the file of the first is being checked:
    struct request *first, **last;
    struct work check;
    char *errors;
    bool is_ours;
};

void control_commands_open(struct control_commands *); // the caller sets the members up to `opaque`
// Handles a request: a control_handler, whose `opaque` are the commands.
void control_commands_handle(void *commands, struct control_request *, const char *line);

#endif
