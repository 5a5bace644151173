// A clip that the control socket asks for: `record CAMERA MILLISECONDS`. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_CLIP_H
#define FRAMED_DAEMON_SERVICE_CLIP_H

#include "daemon/service/metrics.h"

struct clip_wanted {
    char camera[32];
    long long milliseconds; // from now on
};

// Reads what is behind the word. Returns the bytes that it took; negative: it is wrong.
int clip_read(struct clip_wanted *, const char *text);
// The reply, as control_reply takes it.
char *clip_record(const struct clip_wanted *, const struct metrics *);

#endif
