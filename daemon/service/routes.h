// The routes of HTTP. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_ROUTES_H
#define FRAMED_DAEMON_SERVICE_ROUTES_H

#include "daemon/service/http.h"
#include "daemon/service/metrics.h"

struct routes_context {
    struct reload *reload;
    struct config_desk *desk;
    // Returns the present state for the pages.
    void (*snapshot)(void *opaque, struct metrics *ret);
    void *opaque;
    struct event_streams *streams;
    struct camera_finder *finder;
    struct view_streams *views;
};

// Their `opaque` is a struct routes_context.
extern const struct http_route routes_table[];
extern const int routes_count;

// Fills in a page that needs only metrics; false: there is none at that path.
bool routes_get(const struct metrics *, const char *path, struct http_page *ret);

#endif
