// Who may ask for what by HTTP: a token where one is wanted; a Host that no other site can have
// made up (DNS rebinding) where none is; an Origin that is this site's and a body of JSON where the
// request is more than a look. Pure.
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
    const char *token; // NULL: none
    bool unix_socket;  // its file's mode says who may ask
    const char *host;  // that the configuration names
    bool may_write;
};

// The status to refuse it with, and one sentence; 0: it may go on.
int http_guard(const struct http_demands *, const struct http_credentials *, const char **why);

#endif
