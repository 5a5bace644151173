// Streams of pictures over HTTP, each with as many of the newest as its client reads:
//
// GET /api/v1/view?c=CAMERA[/OUTPUT[/PLANE]]:WIDTH,...&fps=F: many cameras in one stream of
// messages (view/view_messages.h). If something cannot be shown, its facts contain the reason, and
// it is tried again every second. A sign of life is sent after 5 s without anything else. An
// output's pictures have its own size, whatever WIDTH is.
//
// GET /api/v1/cameras/NAME/stream.mjpg?width=W&fps=F: one camera as multipart/x-mixed-replace.
//
// Loop thread only.
#ifndef FRAMED_DAEMON_SERVICE_VIEW_STREAM_H
#define FRAMED_DAEMON_SERVICE_VIEW_STREAM_H

#include "daemon/service/http.h"
#include "daemon/service/target.h"

enum { VIEWERS_MAX = 32 };

struct view_streams;

struct view_streams_context {
    uv_loop_t *loop;
    void (*snapshot)(void *opaque, struct metrics *ret);
    void *opaque;
};

int view_streams_open(struct view_streams **ret, const struct view_streams_context *);
// The loop's next iterations close its handles. No exchange may be left. Accepts NULL.
void view_streams_close(struct view_streams *);
int view_streams_count(const struct view_streams *); // number of viewers
void view_streams_serve(struct view_streams *, struct http_exchange *);
void view_streams_serve_mjpeg(struct view_streams *, struct http_exchange *);

#endif
