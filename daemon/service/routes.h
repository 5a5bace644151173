// The routes of HTTP, and what serves them. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_ROUTES_H
#define FRAMED_DAEMON_SERVICE_ROUTES_H

#include "daemon/service/http.h"
#include "daemon/service/metrics.h"

struct routes_context {
    struct reload *reload;
    // Returns the present state for the pages.
    void (*snapshot)(void *opaque, struct metrics *ret);
    void *opaque;
    struct event_streams *streams;
    struct camera_finder *finder;
    struct view_streams *views;
    int config_reads; // under way; initially zero
};

// Their `opaque` is a struct routes_context.
extern const struct http_route routes_table[];
extern const int routes_count;

// Fills in a page that needs only metrics; false: there is none at that path.
bool routes_get(const struct metrics *, const char *path, struct http_page *ret);

// openapi.json beside this file: the endpoints' parameters and responses in OpenAPI 3.0. It
// describes every route, and no other (tests/daemon/service/openapi.c).
extern const char openapi_text[], openapi_end[];

// --- routes_config.c: the configuration. The file's and the running one, checks of a text, and
// reloads; files are read as work. Changes of cameras, which survive a restart
// (supervisor/edit.h): each is answered once it runs and is on disk, or once it is refused.

// GET: {"path", "text": YAML of the files (config/print.h; null: they have mistakes),
// "running": the same of the running configuration, "mistakes":
// [{"file", "line", "column", "key", "text"}], "changes": [{"path": "cameras.gate", "change":
// "changed", "text": "cameras.gate: url changes"}] that a reload would make}.
void routes_show_config(void *context, struct http_exchange *);
// POST {"text"}: its {"mistakes"} in place of the file. Looks up, opens and changes nothing.
void routes_check_config(void *context, struct http_exchange *);
// POST: {"done", ...} as `framed reload` prints it, or 409 with {"error", "mistakes"}.
void routes_reload(void *context, struct http_exchange *);
// The pattern's `*` is the camera's name. A PUT's body is a JSON object with the camera's keys.
void routes_put_camera(void *context, struct http_exchange *);
void routes_delete_camera(void *context, struct http_exchange *);
void routes_pause_camera(void *context, struct http_exchange *);
void routes_resume_camera(void *context, struct http_exchange *);

// Converts a camera's keys, a JSON object, to YAML 1.1 with the same lines, for secret_free
// (config/expand.h); a drop-in file stores it. Dollar signs are literal unless `expands`: then
// texts may contain references. A zero byte must follow the body. Returns 0; -EINVAL: no JSON, or
// no object, with a sentence in `why`; -ENOMEM.
int camera_body_yaml(char **ret, const char *body, size_t length, bool expands, char *why,
                     size_t size);

// --- camera_finder.c: POST api/v1/discover and api/v1/probe find the network's cameras, and
// examine one camera's stream
//
// Both run in a child of this binary (`framed discover`, `framed probe`), one of each at a time:
// they parse XML, RTSP and pictures of strangers, and open decoders and devices. A crash, a hang or
// a picture that takes all memory then ends with the child. A password goes to the child by
// standard input, and to a camera once.

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
void routes_discover(void *context, struct http_exchange *);
// {"url", "user", "password", "name", "seconds", "clear"}, only the first required: the object of
// `framed probe --json`, with `room`, the daemon's own judgement. A camera that does not respond or
// refuses gives an answer, too: {"error", "wants_login"}.
void routes_probe(void *context, struct http_exchange *);

#endif
