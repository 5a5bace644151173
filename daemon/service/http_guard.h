// Permits or refuses HTTP requests. If a token is configured, requests must contain it. If not,
// Host must be a name that no other site can have made up (DNS rebinding). Requests other than GET
// and HEAD must have an Origin of this site and a body of JSON. Pure.
#ifndef FRAMED_DAEMON_SERVICE_HTTP_GUARD_H
#define FRAMED_DAEMON_SERVICE_HTTP_GUARD_H

#include <stdbool.h>

// A request's headers and kind; NULL: absent.
struct http_credentials {
    const char *authorization, *host, *origin, *content_type;
    bool looks;    // GET or HEAD
    bool open;     // the page needs no token
    bool writes;   // it changes the daemon's operation
    bool has_body; // of POST or PUT
};

// The server's requirements.
struct http_demands {
    const char *token;      // NULL: none
    const char *read_token; // sufficient for GET and HEAD; NULL: none
    bool unix_socket;       // its file's mode limits the clients
    const char *host;       // from the configuration
    bool may_write;
    bool admins_alone; // writes need an admin, and the peer of the unix socket is none
};

// The access that a request's token gives.
enum http_access {
    HTTP_ACCESS_OPEN, // no token is required
    HTTP_ACCESS_NONE, // no token, or a wrong one
    HTTP_ACCESS_READ,
    HTTP_ACCESS_FULL,
};
enum http_access http_access(const struct http_demands *, const struct http_credentials *);

// Returns the status of a refusal, with one sentence in *why; 0: permitted.
int http_guard(const struct http_demands *, const struct http_credentials *, const char **why);

#endif
