#include "daemon/service/camera_body.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Returns the code unit of a valid \uXXXX in JSON, else 0.
static unsigned unit_of(const char *json)
{
    char digits[5] = "";
    if (json[0] != '\\' || json[1] != 'u')
        return 0;
    memcpy(digits, json + 2, 4);
    return (unsigned)strtoul(digits, NULL, 16);
}

// Converts valid JSON to YAML: a character beyond U+FFFF is two \u in JSON and one \U in YAML; a
// literal dollar sign is doubled. All else is the same.
static char *yaml_of(const char *json, bool expands)
{
    char *yaml = malloc(2 * strlen(json) + 1), *to = yaml;
    while (yaml && *json) {
        const unsigned high = unit_of(json);
        if (!expands && (*json == '$' || high == '$')) {
            to = mempcpy(to, "$$", 2);
            json += *json == '$' ? 1 : 6;
            continue;
        }
        if (high >> 10 == 0xd800 >> 10) {
            const unsigned low = unit_of(json + 6);
            to += sprintf(to, "\\U%08x", 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff));
            json += 12;
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

int camera_body_yaml(char **ret, const char *body, size_t length, bool expands, char *why,
                     size_t size)
{
    json_error_t error;
    json_t *json = json_loadb(body, length, JSON_REJECT_DUPLICATES, &error);
    const int rc = json_is_object(json) ? 0 : -EINVAL;
    char *near = json ? NULL : strstr(error.text, " near ");
    if (near)
        *near = 0; // the rest may be a password
    if (!json)
        snprintf(why, size, "line %d, column %d: %s", error.line, error.column, error.text);
    else if (rc < 0)
        snprintf(why, size, "a camera is an object: {\"url\": ..., \"outputs\": ...}");
    json_decref(json);
    if (rc < 0)
        return rc;
    *ret = yaml_of(body, expands);
    return *ret ? 0 : -ENOMEM;
}
