// Answers over HTTP with a JSON body. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_JSON_ANSWER_H
#define FRAMED_DAEMON_SERVICE_JSON_ANSWER_H

#include "daemon/service/http.h"

struct json_t;

void json_answer(struct http_exchange *, int status, struct json_t *); // frees the JSON

#endif
