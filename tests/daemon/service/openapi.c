// The description of the endpoints and the table of routes list the same ones.

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/service/routes.h"
#include "tests/test.h"

static json_t *paths(json_t **spec)
{
    json_error_t error;
    *spec = json_loads(openapi_text, JSON_REJECT_DUPLICATES, &error);
    CHECK(*spec, "line %d: %s", error.line, error.text);
    return json_object_get(*spec, "paths");
}

// Turns "/api/v1/cameras/{camera}" into a pattern.
static char *pattern_of(const char *path, char *to)
{
    char *end = to;
    for (; *path; path++) {
        *end++ = *path == '{' ? '*' : *path;
        if (*path == '{')
            path += strcspn(path, "}");
    }
    *end = 0;
    return to;
}

static const struct http_route *find_route(const char *pattern, const char *method)
{
    for (int i = 0; i < routes_count; i++)
        if (strcmp(routes_table[i].pattern, pattern) == 0 &&
            strcasecmp(routes_table[i].method, method) == 0)
            return &routes_table[i];
    return NULL;
}

static void test_described_are_routed(void)
{
    json_t *spec, *all = paths(&spec), *methods, *operation;
    const char *path, *method;
    char pattern[256];
    json_object_foreach(all, path, methods)
    {
        json_object_foreach(methods, method, operation)
        {
            const struct http_route *route = find_route(pattern_of(path, pattern), method);
            const json_t *security = json_object_get(operation, "security");
            const bool is_open = security && json_array_size(security) == 0;
            const bool writes = json_is_true(json_object_get(operation, "x-needs-http-write"));
            CHECK(route, "no route for %s %s", method, path);
            CHECK(!route || route->open == is_open, "%s %s needs %s token", method, path,
                  is_open ? "a" : "no");
            CHECK(!route || route->writes == writes, "%s %s: http_write", method, path);
        }
    }
    json_decref(spec);
}

static void test_routed_are_described(void)
{
    json_t *spec, *all = paths(&spec);
    for (int i = 0; i < routes_count; i++) {
        const char *path;
        char pattern[256], method[16] = "";
        json_t *methods;
        bool found = false;
        for (size_t c = 0; routes_table[i].method[c]; c++)
            method[c] = (char)(routes_table[i].method[c] | 0x20);
        json_object_foreach(all, path, methods)
        {
            found |= strcmp(pattern_of(path, pattern), routes_table[i].pattern) == 0 &&
                     json_object_get(methods, method);
        }
        CHECK(found, "openapi.json does not describe %s %s", routes_table[i].method,
              routes_table[i].pattern);
    }
    json_decref(spec);
}

int main(void)
{
    TEST(test_described_are_routed());
    TEST(test_routed_are_described());
    return test_end();
}
