#include "config/endpoints.h"

#include <stdlib.h>
#include <string.h>

static const char plain[] = "http://", tls[] = "https://";

static bool is_tls(const char *url)
{
    return strncasecmp(url, tls, strlen(tls)) == 0;
}

static bool is_port(const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= 5 && (!text[digits] || !strcmp(text + digits, "/")) &&
           atoi(text) >= 1 && atoi(text) <= 65535;
}

static const char *url_wrong(const char *url)
{
    if (!is_tls(url) && strncasecmp(url, plain, strlen(plain)) != 0)
        return "has an entry that is no address of etcd";
    const char *host = url + strlen(is_tls(url) ? tls : plain);
    if (strchr(host, '@'))
        return "has a user or a password in it, which stand beside it";
    const bool brackets = *host == '[';
    const size_t length = strcspn(host, brackets ? "]" : ":/?#") + brackets;
    if (length <= 2u * brackets || (brackets && host[length - 1] != ']') ||
        strcspn(host, " \"<>\\") < length)
        return "has an entry without a host";
    if (host[length] != ':' || !is_port(host + length + 1))
        return "has an entry without a port, or with something behind it";
    return strlen(url) < ENDPOINT_SIZE ? NULL : "has an entry that is too long";
}

const char *endpoints_parse(struct endpoints *ret, const char *const text[], int n)
{
    struct endpoints endpoints = {0};
    for (int i = 0; i < n; i++) {
        const char *wrong = url_wrong(text[i]);
        if (wrong)
            return wrong;
        for (int before = 0; before < i; before++)
            if (!strcasecmp(text[before], text[i]))
                return "has an entry twice";
        if (is_tls(text[i]) != is_tls(text[0]))
            return "has entries with TLS and without";
        strcpy(endpoints.url[endpoints.n++], text[i]);
    }
    *ret = endpoints;
    return NULL;
}

bool endpoints_have_tls(const struct endpoints *endpoints)
{
    return endpoints->n > 0 && is_tls(endpoints->url[0]);
}
