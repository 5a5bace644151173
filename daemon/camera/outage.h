// Failed and ended connections of a camera: when the next try may begin, and which of them are
// logged. Camera's thread only.
#ifndef FRAMED_DAEMON_CAMERA_OUTAGE_H
#define FRAMED_DAEMON_CAMERA_OUTAGE_H

#include "daemon/base/retry.h"
#include "daemon/source/demux.h"
#include "daemon/source/login_pause.h"

struct outage {
    struct login_pause *logins; // NULL, or no RTSP user: wrong passwords are tried every 30 s
    struct login login;
    struct retry retry;
    int64_t due_ns;       // CLOCK_MONOTONIC: the next try, unless the login has to wait
    bool has_other_login; // as of the last refusal
    int64_t running_ns;   // arrival of the connection's first picture; 0: none yet
    // When a camera without room for a session has forgotten any of ours; 0: it has refused none
    // since the last picture.
    int64_t room_ns;
    int failures;                    // since the camera was steady
    char last_logged[DEMUX_WHY_MAX]; // the last failure logged
    int64_t last_logged_ns;
};

void outage_open(struct outage *, const char *url, struct login_pause *logins);
// Returns how long to wait before the next connection; 0: it may begin, and counts as begun. Call
// it at least once a second to notice a reload, which ends the wait after a refused password.
int64_t outage_wait_ns(struct outage *);
void outage_end(struct outage *); // the first picture of a connection arrived
// Records and logs that the connection failed or ended with `rc`, for the reason `why`. Returns the
// wait for the next try.
int64_t outage_begin(struct outage *, int rc, const char *why, const struct demux_memory *);
// True after so many failures that repeated ones, and first pictures in between, are not logged.
bool outage_is_quiet(const struct outage *);
// Call for each picture. True once: the outage was quiet, and pictures have arrived for 10 s.
bool outage_is_over(struct outage *);

#endif
