#include "daemon/service/http_guard.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

// In a time that tells nothing of how much of the token was right.
static bool is_token(const char *wanted, const char *given)
{
    size_t n = strlen(wanted), m = strlen(given);
    volatile unsigned char wrong = n != m;
    for (size_t i = 0; i < m; i++)
        wrong |= (unsigned char)(given[i] ^ (i < n ? wanted[i] : 0));
    return !wrong;
}

static bool has_token(const char *wanted, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    return authorization && strncasecmp(authorization, scheme, strlen(scheme)) == 0 &&
           is_token(wanted, authorization + strlen(scheme));
}

// Of a Host header the name without its port and the brackets of IPv6. False: it is too long.
static bool host_name(const char *header, char *ret, size_t size)
{
    const bool bracketed = *header == '[';
    const char *from = header + bracketed, *end = strchr(from, bracketed ? ']' : ':');
    const size_t n = end ? (size_t)(end - from) : strlen(from);
    if (n >= size)
        return false;
    memcpy(ret, from, n);
    ret[n] = 0;
    return true;
}

// A page of another site can make a browser ask here under a name of its own, never under an
// address.
static bool is_own_host(const struct http_demands *demands, const char *header)
{
    unsigned char address[16];
    char name[256];
    if (!header || !host_name(header, name, sizeof name))
        return !header; // HTTP/1.0, which no browser speaks
    return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, address) == 1 ||
           inet_pton(AF_INET6, name, address) == 1 ||
           (demands->host && strcasecmp(name, demands->host) == 0);
}

static bool is_same_origin(const char *origin, const char *host)
{
    const char *name = strstr(origin, "://");
    return name && host && strcasecmp(name + 3, host) == 0;
}

static bool is_json(const char *content_type)
{
    static const char json[] = "application/json";
    return content_type && strncasecmp(content_type, json, strlen(json)) == 0 &&
           strchr(" ;", content_type[strlen(json)]); // the end, too
}

int http_guard(const struct http_demands *demands, const struct http_credentials *given,
               const char **why)
{
    if (demands->token && !given->open && !has_token(demands->token, given->authorization)) {
        *why = "a token is needed: Authorization: Bearer TOKEN";
        return 401;
    }
    if (!demands->token && !demands->unix_socket && !is_own_host(demands, given->host)) {
        *why = "without a token, Host must be localhost, an address or the name that the key http "
               "gives (http: NAME:PORT); by other names set an http_token and send it";
        return 403;
    }
    if (given->looks)
        return 0;
    if (given->origin && !is_same_origin(given->origin, given->host)) {
        *why = "Origin is another site's";
        return 403;
    }
    if (given->writes && !demands->may_write) {
        *why = "http_write is false in the configuration: nothing can be changed by HTTP";
        return 403;
    }
    if (given->has_body && !is_json(given->content_type)) {
        *why = "Content-Type must be application/json";
        return 415;
    }
    return 0;
}
