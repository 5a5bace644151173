// Who may ask for what by HTTP. Where a token is configured, requests must bring it. Where none is,
// Host must be a name that no other site can have made up (DNS rebinding). Requests other than GET
// and HEAD must have an Origin of this site and a body of JSON. Pure.
#ifndef FRAMED_DAEMON_SERVICE_HTTP_GUARD_H
#define FRAMED_DAEMON_SERVICE_HTTP_GUARD_H

#include <stdbool.h>

// Of a request; what it lacks is NULL.
struct http_credentials {
    const char *authorization, *host, *origin, *content_type;
    bool looks;    // GET or HEAD
    bool open;     // the page needs no token
    bool writes;   // it changes what the daemon does
    bool has_body; // of POST or PUT
};

// What is demanded.
struct http_demands {
    const char *token;      // NULL: none
    const char *read_token; // that does for GET and HEAD; NULL: none
    bool unix_socket;       // its file's mode says who may ask
    const char *host;       // that the configuration names
    bool may_write;
    bool admins_alone; // may write, and the peer of the unix socket is none
};

// What the token of a request gives access to.
enum http_access {
    HTTP_ACCESS_OPEN, // no token is demanded
    HTTP_ACCESS_NONE, // it has none, or a wrong one
    HTTP_ACCESS_READ,
    HTTP_ACCESS_FULL,
};
enum http_access http_access(const struct http_demands *, const struct http_credentials *);

// The status to refuse it with, and one sentence; 0: it may go on.
int http_guard(const struct http_demands *, const struct http_credentials *, const char **why);

#endif
