// POST api/v1/discover and api/v1/probe: find the network's cameras, and examine one camera's
// stream. Loop thread.
//
// Both run in a child of this binary (`framed discover`, `framed probe`), one of each at a time:
// they parse XML, RTSP and pictures of strangers, and open decoders and devices. A crash, a hang or
// a picture that takes all memory then ends with the child. A password goes to the child by
// standard input, and to a camera once.
#ifndef FRAMED_DAEMON_SERVICE_CAMERA_FINDER_H
#define FRAMED_DAEMON_SERVICE_CAMERA_FINDER_H

#include "daemon/service/http.h"
#include "daemon/service/metrics.h"

struct camera_finder;

struct camera_finder_context {
    uv_loop_t *loop;
    // Returns the running state, which gives the room for one more camera.
    void (*snapshot)(void *opaque, struct metrics *ret);
    void *opaque;
};

int camera_finder_open(struct camera_finder **ret, const struct camera_finder_context *);
// The loop's next iterations close its handles. No exchange may be left. Accepts NULL.
void camera_finder_close(struct camera_finder *);

// {"user", "password", "addresses", "seconds"}, all optional: the list of `framed discover --json`.
void camera_finder_discover(struct camera_finder *, struct http_exchange *);
// {"url", "user", "password", "name", "seconds", "clear"}, only the first required: the object of
// `framed probe --json`, with `room`, the daemon's own judgement. A camera that does not respond or
// refuses gives an answer, too: {"error", "wants_login"}.
void camera_finder_probe(struct camera_finder *, struct http_exchange *);

#endif
