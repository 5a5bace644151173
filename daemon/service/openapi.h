// GET /api/v1/openapi.json: the endpoints' parameters and responses in OpenAPI 3.0. openapi.json
// beside this file describes every route, and no other (tests/daemon/service/openapi.c).
#ifndef FRAMED_DAEMON_SERVICE_OPENAPI_H
#define FRAMED_DAEMON_SERVICE_OPENAPI_H

#include "daemon/service/http.h"

extern const char openapi_text[], openapi_end[];

void openapi_serve(void *opaque, struct http_exchange *);

#endif
