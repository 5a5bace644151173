#include "daemon/service/camera_body.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Characters beyond U+FFFF are two \u in JSON and one \U in YAML; all else is the same.
static char *yaml_of(const char *json)
{
    char *yaml = malloc(strlen(json) + 1), *to = yaml;
    while (yaml && *json) {
        unsigned high, low;
        int used = 0;
        if (sscanf(json, "\\u%4x\\u%4x%n", &high, &low, &used) == 2 && used == 12 &&
            high >> 10 == 0xd800 >> 10) {
            to += sprintf(to, "\\U%08x", 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff));
            json += used;
            continue;
        }
        if (*json == '\\')
            *to++ = *json++;
        *to++ = *json++;
    }
    if (yaml)
        *to = 0;
    return yaml;
}

int camera_body_yaml(char **ret, const char *body, size_t length, char *why, size_t size)
{
    json_error_t error;
    json_t *json = json_loadb(body, length, JSON_REJECT_DUPLICATES, &error);
    const int rc = json_is_object(json) ? 0 : -EINVAL;
    if (!json)
        snprintf(why, size, "line %d, column %d: %s", error.line, error.column, error.text);
    else if (rc < 0)
        snprintf(why, size, "a camera is an object: {\"url\": ..., \"outputs\": ...}");
    json_decref(json);
    if (rc < 0)
        return rc;
    *ret = yaml_of(body);
    return *ret ? 0 : -ENOMEM;
}
