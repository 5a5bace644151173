// Pages by HTTP, served between the loop's other work, one a connection. Clients are bounded in
// number, in what they may send and in time. When one comes at the limit, the oldest client that
// has not sent its request is dropped for it, or else the oldest of all. Loop thread only.
#ifndef FRAMED_DAEMON_SERVICE_HTTP_H
#define FRAMED_DAEMON_SERVICE_HTTP_H

#include <stdbool.h>
#include <uv.h>

#include "config/config.h"

enum {
    HTTP_CLIENTS_MAX = 64,
    HTTP_IDLE_MS = 10000,     // from a connection to the first byte of its request
    HTTP_REQUEST_MS = 2000,   // from there to the end of its head
    HTTP_RESPONSE_MS = 10000, // from there to the end of the response
    HTTP_CLIENT_BYTES = 8192, // for a request's head
    HTTP_MODE = 0660,         // of a unix socket
};

struct http;

struct http_page {
    int status; // as HTTP has them
    const char *type;
    char *body; // http frees it; NULL: out of memory
    size_t size;
};

struct http_options {
    uv_loop_t *loop;
    const struct sink_address *address; // tcp or unix; copied
    const char *token;                  // that clients must bring; copied; NULL: none
    // Fills the page at that path; false: there is none.
    bool (*page)(void *opaque, const char *path, struct http_page *ret);
    void *opaque;
};

// Listens. 0 or negative errno, with one sentence in `why`.
int http_open(struct http **ret, const struct http_options *, char *why, size_t size);
int http_port(const struct http *); // of a tcp address, for port 0; else 0
const struct sink_address *http_address(const struct http *);
// From the next request on clients must bring that token, which http frees; NULL: none.
void http_token(struct http *, char *token);
// As sink_check_path; accepts NULL.
void http_check_path(struct http *);
// Its handles close with the loop's next turns; whatever was under way is cut off. Accepts NULL.
void http_close(struct http *);

#endif
