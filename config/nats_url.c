#include "config/nats_url.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT = 4222 };

static bool is_host(const char *host, size_t length, bool brackets)
{
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)host[i]) && !strchr(brackets ? ":.%" : ".-_", host[i]))
            return false;
    return length > 0;
}

// One server, up to `end`, to the end of ret->servers.
static const char *add_server(struct nats_url *ret, const char *server, const char *end)
{
    const bool brackets = *server == '[';
    const char *host = server + brackets;
    const char *rest = host;
    long port = PORT;
    while (rest < end && *rest != (brackets ? ']' : ':'))
        rest++;
    const size_t length = (size_t)(rest - host);
    if (!is_host(host, length, brackets) || (brackets && rest == end))
        return "has a server without a host, or with one that cannot be";
    rest += brackets;
    if (rest < end) {
        const char *digits = rest + 1;
        const size_t n = strspn(digits, "0123456789");
        port = *rest == ':' && n > 0 && n <= 5 && digits + n == end ? atol(digits) : 0;
    }
    if (port < 1 || port > 65535)
        return "has a server with an invalid port";
    const size_t used = strlen(ret->servers);
    const int n =
        snprintf(ret->servers + used, sizeof ret->servers - used, "%s%s%.*s%s:%ld", used ? "," : "",
                 brackets ? "[" : "", (int)length, host, brackets ? "]" : "", port);
    return (size_t)n < sizeof ret->servers - used ? NULL : "has servers that are too long";
}

static const char *parse_servers(struct nats_url *ret, const char *servers, const char *slash)
{
    for (int n = 0; servers <= slash; n++) {
        const char *comma = memchr(servers, ',', (size_t)(slash - servers));
        const char *end = comma ? comma : slash;
        if (n == NATS_SERVERS_MAX)
            return "has more than 8 servers";
        const char *wrong = add_server(ret, servers, end);
        if (wrong)
            return wrong;
        servers = end + 1;
    }
    return NULL;
}

// Subjects that begin with $ are the server's own.
static const char *parse_subject(struct nats_url *ret, const char *subject)
{
    const size_t length = strlen(subject);
    if (length == 0)
        return "has no subject behind its servers";
    if (length > NATS_SUBJECT_MAX)
        return "has a subject that is too long: 128 bytes at most";
    for (size_t i = 0; i < length; i++) {
        if (subject[i] == '.' && (i == 0 || i == length - 1 || subject[i + 1] == '.'))
            return "has a subject with an empty token: no dot at its ends, nor one behind another";
        if (subject[i] == '*' || subject[i] == '>')
            return "has a subject with a wildcard, which nothing can be published to";
        if (!isgraph((unsigned char)subject[i]) || strchr("/?#", subject[i]))
            return "has a subject with a character that it cannot have (letters, digits, dots, "
                   "- and _)";
    }
    if (*subject == '$')
        return "has a subject of the server's own, which begins with $";
    memcpy(ret->subject, subject, length + 1);
    return NULL;
}

const char *nats_url_parse(struct nats_url *ret, const char *url)
{
    static const char scheme[] = "nats://";
    *ret = (struct nats_url){0};
    if (strncmp(url, scheme, strlen(scheme)) != 0)
        return "is no address of a NATS server";
    const char *servers = url + strlen(scheme);
    const char *slash = strchr(servers, '/');
    if (strchr(servers, '@'))
        return "has a user or a password in it, which stand in the section `nats`";
    if (!slash)
        return "has no subject behind its servers";
    const char *wrong = parse_servers(ret, servers, slash);
    return wrong ? wrong : parse_subject(ret, slash + 1);
}
