// What is served by HTTP. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_ROUTES_H
#define FRAMED_DAEMON_SERVICE_ROUTES_H

#include "daemon/service/http.h"
#include "daemon/service/metrics.h"

// Fills the page at that path; false: there is none.
bool routes_get(const struct metrics *, const char *path, struct http_page *ret);

#endif
