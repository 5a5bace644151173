// HTTP, served between the loop's other work, one request a connection. Clients are bounded in
// number, in what they may send and in time. A client at the limit pushes out one that has brought
// no token, from the address that has most of these: first one that has not sent its request. Where
// all have brought a token, the new one is closed. Loop thread only.
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
    HTTP_HOLD_MS = 60000,      // that an answer may take which comes later
    HTTP_CLIENT_BYTES = 16384, // for a request's head
    HTTP_BODY_BYTES = 1 << 20,
    HTTP_MODE = 0660, // of a unix socket
};

struct http;

// A request and its answer. Valid until it is answered, or, where it was held or is a stream, until
// `gone` was called.
struct http_exchange;

struct http_page {
    int status; // as HTTP has them
    const char *type;
    char *body; // NULL: out of memory
    size_t size;
    bool constant;        // the body stays for ever; else http frees it
    bool gzipped;         // as the body lies there: all browsers take it, so nobody is asked
    const char *etag;     // of a page that clients may keep and ask for again; constant; NULL: none
    const char *location; // of a redirection; NULL: none
};

// A response without an end.
struct http_stream {
    const char *type;
    // The socket takes up to `room` bytes: how many were put there; 0: nothing now, until
    // http_wake().
    size_t (*fill)(void *opaque, char *to, size_t room);
    void (*gone)(void *opaque); // the client is, or http is closed; the last call
    void *opaque;
};

// What is answered to requests of one kind. A `*` in the pattern stands for one part of the path,
// as in /api/v1/cameras/*/pause. GET serves HEAD, too.
struct http_route {
    const char *method, *pattern;
    // With http_answer(), http_refuse(), http_hold() or http_stream().
    void (*serve)(void *opaque, struct http_exchange *);
    bool open;   // needs no token
    bool writes; // needs the configuration's http_write
};

struct http_options {
    uv_loop_t *loop;
    const struct sink_address *address; // tcp or unix; copied
    const char *token;                  // that clients must bring; copied; NULL: none
    const char *read_token;             // that does for GET and HEAD; copied; NULL: none
    bool may_write;
    const struct http_route *routes; // stay valid
    int n_routes;
    void *opaque; // of the routes
};

// Listens. 0 or negative errno, with one sentence in `why`.
int http_open(struct http **ret, const struct http_options *, char *why, size_t size);
int http_port(const struct http *); // of a tcp address, for port 0; else 0
const struct sink_address *http_address(const struct http *);
// From the next request on clients must bring one of those tokens, which http frees (NULL: none),
// and may write or not. Streams end unless both tokens stay.
void http_permit(struct http *, char *token, char *read_token, bool may_write);
// As sink_check_path; accepts NULL.
void http_check_path(struct http *);
// Its handles close with the loop's next turns; whatever was under way is cut off. Accepts NULL.
void http_close(struct http *);

// --- of a request

const char *http_path(const struct http_exchange *); // of a pattern without a `*`
// What stands in the path for the pattern's `*` number `i`. Valid as long as the exchange.
const char *http_part(const struct http_exchange *, int i);
// A value of the query; NULL: it has none. Likewise.
const char *http_argument(const struct http_exchange *, const char *name);
const char *http_header(const struct http_exchange *, const char *name);
// Returns whether the configuration and the token of the request allow it to change things.
bool http_may_write(const struct http_exchange *);
// A zero byte follows it.
const char *http_body(const struct http_exchange *, size_t *size);

// --- its answer

void http_answer(struct http_exchange *, const struct http_page *);
// With one sentence: as {"error": ...} below /api/, else as text.
void http_refuse(struct http_exchange *, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// The answer comes later, in at most HTTP_HOLD_MS, by http_answer() or http_refuse(). Where the
// client is gone before, `gone` is called in place of that.
void http_hold(struct http_exchange *, void (*gone)(void *opaque), void *opaque);
// 0, or -EBUSY where there are HTTP_STREAMS_MAX already: then it is still to be answered.
int http_stream(struct http_exchange *, const struct http_stream *);
// There is more to be put into the stream.
void http_wake(struct http_exchange *);

#endif
