// How long cameras that refused user or password are left in peace: 10 min, then 30, then an hour
// at a time, and never more than four refusals in 30 min, because many cameras lock the account or
// our address after five. Cameras of one host share that, and try one at a time until the host has
// accepted one of them. It outlives a restart in a file of the state directory, which holds no
// password: 16 bits of a keyed hash tell whether the password is another one by now, and no more.
// Any thread.
#ifndef FRAMED_DAEMON_INPUT_LOGIN_PAUSE_H
#define FRAMED_DAEMON_INPUT_LOGIN_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

struct login_pause;

struct login {            // of a camera
    char host[256];       // in lower case; "": it has neither user nor password, or is none of RTSP
    uint16_t credentials; // hash of both
};

// `folder`: where the file is kept; NULL: nowhere, the pauses end with the process. `now_ns` is
// CLOCK_MONOTONIC here and below, `realtime_ns` the wall clock at the same time. A file that cannot
// be read counts as none. 0 or a negative errno.
int login_pause_open(struct login_pause **ret, const char *folder, int64_t now_ns,
                     int64_t realtime_ns);
void login_pause_close(struct login_pause *); // accepts NULL

void login_pause_identify(const struct login_pause *, const char *url, struct login *ret);
// When a try with these credentials may begin; `now_ns` says that it may now, and takes it as
// begun: for 0.75 s no other camera of the host may. Asked again at least once a second while it
// waits, a camera hears of a reload and of what other cameras found out. May write the file.
int64_t login_pause_until(struct login_pause *, const struct login *, int64_t now_ns);
// The outcome of a try that the camera has answered. May write the file. `other_scheme`: the camera
// offers another scheme of authentication, which may be tried without a pause.
void login_pause_refused(struct login_pause *, const struct login *, bool other_scheme,
                         int64_t now_ns);
void login_pause_accepted(struct login_pause *, const struct login *, int64_t now_ns);
// Somebody reloads the configuration: all pauses end. Never blocks.
void login_pause_reload(struct login_pause *);

#endif
