// A clip requested on the control socket: `record CAMERA MILLISECONDS`. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_CLIP_H
#define FRAMED_DAEMON_SERVICE_CLIP_H

#include "daemon/service/metrics.h"

struct clip_wanted {
    char camera[32];
    long long milliseconds; // from now on
};

// Parses the arguments of the command. Returns the bytes read; negative: malformed.
int clip_read(struct clip_wanted *, const char *text);
// Returns the reply for control_reply.
char *clip_record(const struct clip_wanted *, const struct metrics *);

#endif
