// POST api/v1/discover and api/v1/probe: cameras of the network, and what one of them sends. Loop
// thread.
//
// Both run in a child of this binary (`framed discover`, `framed probe`), one of each at a time:
// XML, RTSP and pictures of strangers are parsed, and decoders and devices opened, where a crash, a
// hang or a picture that takes all memory ends with the child. A password goes to it by its
// standard input, and to a camera once.
#ifndef FRAMED_DAEMON_SERVICE_CAMERA_FINDER_H
#define FRAMED_DAEMON_SERVICE_CAMERA_FINDER_H

#include "daemon/service/http.h"
#include "daemon/service/metrics.h"

struct camera_finder;

struct camera_finder_context {
    uv_loop_t *loop;
    // What runs now, from which the room for one more camera follows.
    void (*snapshot)(void *opaque, struct metrics *ret);
    void *opaque;
};

int camera_finder_open(struct camera_finder **ret, const struct camera_finder_context *);
// Its handles close with the loop's next turns. No exchange is left. Accepts NULL.
void camera_finder_close(struct camera_finder *);

// {"user", "password", "seconds"}, all of them optional: the list of `framed discover --json`.
void camera_finder_discover(struct camera_finder *, struct http_exchange *);
// {"url", "user", "password", "name", "seconds", "clear"}, the first alone needed: the object of
// `framed probe --json`, with `room`, the daemon's own judgement. A camera that does not answer or
// refuses is an answer, too: {"error", "wants_login"}.
void camera_finder_probe(struct camera_finder *, struct http_exchange *);

#endif
