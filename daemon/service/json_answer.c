#include "daemon/service/json_answer.h"

#include <jansson.h>
#include <string.h>

void json_answer(struct http_exchange *exchange, int status, json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(json);
    http_answer(exchange, &(struct http_page){.status = status,
                                              .type = "application/json",
                                              .body = text,
                                              .size = text ? strlen(text) : 0});
}
