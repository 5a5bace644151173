// An answer over HTTP whose body is JSON. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_JSON_ANSWER_H
#define FRAMED_DAEMON_SERVICE_JSON_ANSWER_H

#include "daemon/service/http.h"

struct json_t;

void json_answer(struct http_exchange *, int status, struct json_t *); // which it gives away

#endif
