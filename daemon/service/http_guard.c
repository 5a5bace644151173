#include "daemon/service/http_client.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/base/access.h"

// Its time reveals nothing about how much of the token was right.
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

// True if it is empty, or a colon and a port that a client can have connected to.
static bool is_port(const char *text)
{
    static const char digits[] = "0123456789";
    if (!*text)
        return true;
    const size_t n = *text == ':' ? strspn(text + 1, digits) : 0;
    const long port = n >= 1 && n <= 5 ? strtol(text + 1, NULL, 10) : 0;
    return !text[1 + n] && port >= 1 && port <= 65535;
}

// Another site's page can make a browser send requests here under a name of its own, never under an
// address. The header is NAME, IPV4 or [IPV6], each with or without a port, and nothing else.
static bool is_own_host(const struct http_demands *demands, const char *header)
{
    unsigned char address[16];
    char name[256];
    if (!header)
        return true; // HTTP/1.0, which no browser uses
    const bool bracketed = *header == '[';
    const char *from = header + bracketed;
    const size_t n = strcspn(from, bracketed ? "]" : ":");
    if (n == 0 || n >= sizeof name || (bracketed && !from[n]) || !is_port(from + n + bracketed))
        return false;
    memcpy(name, from, n);
    name[n] = 0;
    if (demands->host && strcasecmp(name, demands->host) == 0)
        return bracketed == (strchr(name, ':') != NULL);
    return bracketed ? inet_pton(AF_INET6, name, address) == 1
                     : strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, address) == 1;
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
           strchr(" ;", content_type[strlen(json)]); // or the end
}

enum http_access http_access(const struct http_demands *demands,
                             const struct http_credentials *given)
{
    if (!demands->token)
        return HTTP_ACCESS_OPEN;
    if (has_token(demands->token, given->authorization))
        return HTTP_ACCESS_FULL;
    if (demands->read_token && has_token(demands->read_token, given->authorization))
        return HTTP_ACCESS_READ;
    return HTTP_ACCESS_NONE;
}

int http_guard(const struct http_demands *demands, const struct http_credentials *given,
               const char **why)
{
    const enum http_access access = http_access(demands, given);
    if (access == HTTP_ACCESS_NONE && !given->open) {
        *why = "a token is needed: Authorization: Bearer TOKEN";
        return 401;
    }
    if (access == HTTP_ACCESS_READ && !given->looks) {
        *why = "the http_read_token only reads: this needs the http_token";
        return 403;
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
    if (given->writes && demands->admins_alone) {
        *why = "only root and members of the group " ADMIN_GROUP " may change things on this "
               "socket; others need an http_token";
        return 403;
    }
    if (given->has_body && !is_json(given->content_type)) {
        *why = "Content-Type must be application/json";
        return 415;
    }
    return 0;
}
