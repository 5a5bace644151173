// A camera's connections that failed or ended: when the next try may begin, and what the log says
// of them. One thread (the camera's) uses an outage.
#ifndef FRAMED_DAEMON_CAMERA_OUTAGE_H
#define FRAMED_DAEMON_CAMERA_OUTAGE_H

#include "daemon/input/demux.h"
#include "daemon/input/login_pause.h"
#include "daemon/input/retry.h"

struct outage {
    struct login_pause *logins; // NULL, or no camera of RTSP with a user:
                                // wrong passwords are tried every 30 s
    struct login login;
    struct retry retry;
    bool has_other_login; // as of the last refusal
    int64_t running_ns;   // when the first picture of the connection came; 0: not yet
    // When a camera without room for a session has forgotten any of ours; 0: since the last picture
    // it has refused none.
    int64_t room_ns;
    int failures;                    // since the camera was well
    char last_logged[DEMUX_WHY_MAX]; // of failures
    int64_t last_logged_ns;
};

void outage_open(struct outage *, const char *url, struct login_pause *logins);
// How long until the next connection may begin for all that passwords were refused; 0: now. Asked
// again at least once a second, the camera hears of a reload.
int64_t outage_login_ns(struct outage *);
void outage_connect(struct outage *); // a connection begins
void outage_end(struct outage *);     // its first picture came
// It failed or ended with `rc`, as `why` says. Logs that; returns how long to wait for the next
// try, which outage_login_ns may put off further. *next_ns: both together.
int64_t outage_begin(struct outage *, int rc, const char *why, const struct demux_memory *,
                     int64_t *next_ns);
// So many failures that neither the same ones nor the first pictures in between are logged.
bool outage_is_quiet(const struct outage *);
// Asked at a picture. True once: the outage was quiet, and pictures have come for 10 s.
bool outage_is_over(struct outage *);

#endif
