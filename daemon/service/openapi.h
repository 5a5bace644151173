// GET /api/v1/openapi.json: what the endpoints take and answer, in OpenAPI 3.0: openapi.json beside
// this file, which says something of every route, and of no other (tests/daemon/service/openapi.c).
#ifndef FRAMED_DAEMON_SERVICE_OPENAPI_H
#define FRAMED_DAEMON_SERVICE_OPENAPI_H

#include "daemon/service/http.h"

extern const char openapi_text[], openapi_end[];

void openapi_serve(void *opaque, struct http_exchange *);

#endif
