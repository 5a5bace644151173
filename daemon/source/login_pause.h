// Pauses after a camera refused user or password: 10 min, then 30, then an hour at a time, and
// never more than four refusals in 30 min, because many cameras lock the account or our address
// after five. Cameras of one host share the pauses, and try one at a time until the host has
// accepted one of them. A file in the state directory keeps them over restarts. It contains no
// password: 16 bits of a keyed hash only show whether the password has changed. Any thread.
#ifndef FRAMED_DAEMON_SOURCE_LOGIN_PAUSE_H
#define FRAMED_DAEMON_SOURCE_LOGIN_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

struct login_pause;

struct login {            // credentials of a camera
    char host[256];       // in lower case; "": no user and password, or not RTSP
    uint16_t credentials; // hash of user and password
};

// `folder`: the file's directory; NULL: no file, the pauses end with the process. `now_ns` is
// CLOCK_MONOTONIC here and below, `realtime_ns` the wall clock at the same time. An unreadable file
// counts as none. Returns 0 or a negative errno.
int login_pause_open(struct login_pause **ret, const char *folder, int64_t now_ns,
                     int64_t realtime_ns);
void login_pause_close(struct login_pause *); // accepts NULL

void login_pause_identify(const struct login_pause *, const char *url, struct login *ret);
// Returns when a try with these credentials may begin; `now_ns`: now, and the try counts as begun:
// no other camera of the host may try for 0.75 s. A waiting camera calls it at least once a second,
// to notice a reload and the outcomes of other cameras. May write the file.
int64_t login_pause_until(struct login_pause *, const struct login *, int64_t now_ns);
// Report the outcome of an answered try. May write the file. `other_scheme`: the camera offers
// another authentication scheme, which may be tried without a pause.
void login_pause_refused(struct login_pause *, const struct login *, bool other_scheme,
                         int64_t now_ns);
void login_pause_accepted(struct login_pause *, const struct login *, int64_t now_ns);
// Ends all pauses: the configuration is reloaded. Never blocks.
void login_pause_reload(struct login_pause *);

#endif
