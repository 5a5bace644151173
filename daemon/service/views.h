// Requests for JPEGs of a camera or of the results of one of its outputs. Loop thread only.
#ifndef FRAMED_DAEMON_SERVICE_VIEWS_H
#define FRAMED_DAEMON_SERVICE_VIEWS_H

#include "daemon/service/http.h"
#include "daemon/service/metrics.h"
#include "daemon/view/previews.h"

// --- the target of a request: a camera's pictures, or the results of one of its outputs

enum { TARGET_NAME_MAX = 31 }; // bytes

struct target {
    char camera[TARGET_NAME_MAX + 1];
    struct preview_kind kind; // its output and plane; the caller sets the rest
};

// Parses CAMERA, CAMERA/OUTPUT or CAMERA/OUTPUT/PLANE; false: malformed.
bool target_read(struct target *ret, const char *text);
// Parses a number from PREVIEW_WIDTH_MIN to PREVIEW_WIDTH_MAX; false: it is none.
bool target_read_width(int *ret, const char *text);
// Requests reader->kind of the camera. Returns 0; -ENOENT: no such camera or output; -EINVAL: the
// output has nothing to show; -ENOSPC or -ENOMEM: not now. On failure, one sentence in `why`.
int target_ask(const struct metrics *, const char *camera, struct preview_reader *, char *why,
               size_t size);

// --- snapshots

// GET /api/v1/cameras/NAME/snapshot.jpg?width=W and
// /api/v1/cameras/NAME/outputs/OUTPUT/snapshot.jpg?plane=N: the next picture as a JPEG, with its
// facts in a JPEG comment. Answers now, or within some seconds.
void snapshot_serve(const struct metrics *, struct http_exchange *);

// --- streams
//
// Streams of pictures over HTTP, each with as many of the newest as its client reads:
//
// GET /api/v1/view?c=CAMERA[/OUTPUT[/PLANE]]:WIDTH,...&fps=F: many cameras in one stream of
// messages (view/view_messages.h). If something cannot be shown, its facts contain the reason, and
// it is tried again every second. A sign of life is sent after 5 s without anything else. An
// output's pictures have its own size, whatever WIDTH is.
//
// GET /api/v1/cameras/NAME/stream.mjpg?width=W&fps=F: one camera as multipart/x-mixed-replace
// (view/view_messages.h).

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
