// HTTP, served by the loop, one request per connection. Clients are bounded in number, in size of
// requests and in time. At the limit, a new client pushes out one without a token, from the address
// with the most of these, preferably one still sending its request. If all have brought a token,
// the new one is closed. Loop thread only.
#ifndef FRAMED_DAEMON_SERVICE_HTTP_H
#define FRAMED_DAEMON_SERVICE_HTTP_H

#include <stdbool.h>
#include <uv.h>

#include "config/config.h"

enum {
    HTTP_CLIENTS_MAX = 192,    // a browser that shows the page has three at a time
    HTTP_STREAMS_MAX = 96,     // of these, so that others are served beside them
    HTTP_IDLE_MS = 10000,      // from a connection to the first byte of its request
    HTTP_REQUEST_MS = 2000,    // from there to the end of its head
    HTTP_BODY_MS = 10000,      // from there to the end of its body
    HTTP_RESPONSE_MS = 10000,  // from there to the end of the response; a stream's next step
    HTTP_HOLD_MS = 60000,      // for a held answer
    HTTP_CLIENT_BYTES = 16384, // for a request's head
    HTTP_BODY_BYTES = 1 << 20,
    HTTP_MODE = 0660, // of a unix socket
};

struct http;
struct json_t;

// A request and its answer. Valid until it is answered; a held one or a stream until `gone` is
// called.
struct http_exchange;

struct http_page {
    int status; // of HTTP
    const char *type;
    char *body; // NULL: out of memory
    size_t size;
    bool constant;        // the body is static; else http frees it
    bool gzipped;         // the body is; sent to every client, since all browsers accept it
    const char *etag;     // of a page that clients may cache and revalidate; constant; NULL: none
    const char *location; // of a redirection; NULL: none
};

// A response without an end.
struct http_stream {
    const char *type;
    // Writes up to `room` bytes for the socket and returns their number; 0: nothing until
    // http_wake().
    size_t (*fill)(void *opaque, char *to, size_t room);
    void (*gone)(void *opaque); // the client is gone, or http is closed; the last call
    void *opaque;
};

// Serves requests of one kind. A `*` in the pattern matches one part of the path, as in
// /api/v1/cameras/*/pause. GET also serves HEAD.
struct http_route {
    const char *method, *pattern;
    // Calls http_answer(), http_refuse(), http_hold() or http_stream().
    void (*serve)(void *opaque, struct http_exchange *);
    bool open;   // needs no token
    bool writes; // needs the configuration's http_write
};

struct http_options {
    uv_loop_t *loop;
    const struct sink_address *address; // tcp or unix; copied
    const char *token;                  // required from clients; copied; NULL: none
    const char *read_token;             // sufficient for GET and HEAD; copied; NULL: none
    bool may_write;
    const struct http_route *routes; // must stay valid
    int n_routes;
    void *opaque; // for the routes
};

// Listens. Returns 0 or a negative errno, with one sentence in `why`.
int http_open(struct http **ret, const struct http_options *, char *why, size_t size);
int http_port(const struct http *); // the actual port of a tcp address; else 0
const struct sink_address *http_address(const struct http *);
// Requires one of these tokens, which http frees (NULL: none), and permits writes or not, from the
// next request on. Ends streams if a token is required and either token has changed.
void http_permit(struct http *, char *token, char *read_token, bool may_write);
// See sink_check_path. Accepts NULL.
void http_check_path(struct http *);
// The loop's next iterations close its handles; cuts off all exchanges. Accepts NULL.
void http_close(struct http *);

// --- the request

const char *http_path(const struct http_exchange *); // for a pattern without a `*`
// Returns the part of the path at the pattern's `*` number `i`. Valid as long as the exchange.
const char *http_part(const struct http_exchange *, int i);
// Returns a value of the query; NULL: absent. Valid as long as the exchange.
const char *http_argument(const struct http_exchange *, const char *name);
const char *http_header(const struct http_exchange *, const char *name);
// True if the configuration, the peer and the request's token allow it to change things.
bool http_may_write(const struct http_exchange *);
// Returns the body, with a zero byte after it.
const char *http_body(const struct http_exchange *, size_t *size);

// --- its answer

void http_answer(struct http_exchange *, const struct http_page *);
void http_answer_json(struct http_exchange *, int status, struct json_t *); // frees the JSON
// Answers with one sentence: as {"error": ...} below /api/, else as text.
void http_refuse(struct http_exchange *, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Defers http_answer() or http_refuse() by at most HTTP_HOLD_MS. If the client is gone before,
// calls `gone` instead of that.
void http_hold(struct http_exchange *, void (*gone)(void *opaque), void *opaque);
// Returns 0, or -EBUSY if there are HTTP_STREAMS_MAX already: then it must still be answered.
int http_stream(struct http_exchange *, const struct http_stream *);
// Requests another call of the stream's `fill`.
void http_wake(struct http_exchange *);

#endif
