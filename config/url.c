#include "config/config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum url_kind config_url_kind(const char *url)
{
    static const struct {
        const char *prefix;
        enum url_kind kind;
    } schemes[] = {
        {"rtsp:", URL_RTSP}, {"tcp:", URL_TCP},   {"unix:", URL_UNIX},
        {"pipe:", URL_PIPE}, {"file:", URL_FILE},
    };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncmp(url, schemes[i].prefix, strlen(schemes[i].prefix)) == 0)
            return schemes[i].kind;
    return *url == 0 || strstr(url, "://") ? URL_NONE : URL_FILE;
}

// The authority of a URL is "user:password@host:port"; the rest of it begins at the first of "/?#".
bool config_url_has_host(const char *url)
{
    const char *begin = strstr(url, "://");
    if (!begin)
        return false;
    begin += 3;
    const char *end = begin + strcspn(begin, "/?#"), *host = begin;
    for (const char *p = begin; p < end; p++)
        host = *p == '@' ? p + 1 : host;
    const char *bracket = *host == '[' ? memchr(host, ']', (size_t)(end - host)) : host;
    if (!bracket)
        return false;
    const char *colon = memchr(bracket, ':', (size_t)(end - bracket));
    if (host == (colon ? colon : end))
        return false;
    if (!colon)
        return config_url_kind(url) != URL_TCP;
    size_t digits = strspn(colon + 1, "0123456789");
    int port = digits > 0 && digits <= 5 ? atoi(colon + 1) : 0;
    return colon + 1 + digits == end && port >= 1 && port <= 65535;
}

// Where user and password begin, and the '@' behind them. A password may hold any character, so
// where in doubt it goes on: everything before the last '@' is hidden, be it part of a path.
static const char *credentials(const char *url, const char **end)
{
    const char *scheme = strstr(url, "://");
    const char *at = strrchr(url, '@');
    const char *begin = at && scheme && scheme < at ? scheme + 3 : url;
    bool any = at && (begin > url || memchr(url, ':', (size_t)(at - url)));
    *end = any ? at : begin;
    return begin;
}

// The value of a parameter that cameras take credentials in begins at `p`.
static bool secret_value(const char *url, const char *p)
{
    static const char *const names[] = {"password", "passwd", "pwd",  "pass", "token",
                                        "key",      "secret", "auth", "user", "username"};
    for (size_t i = 0; p > url && p[-1] == '=' && i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]), before = (size_t)(p - 1 - url);
        if (before >= n && !strncasecmp(p - 1 - n, names[i], n) &&
            (before == n || !isalnum((unsigned char)p[-2 - (ptrdiff_t)n])))
            return true;
    }
    return false;
}

char *config_url_redacted(const char *url, char *to, size_t size)
{
    const char *at, *begin = credentials(url, &at),
                    *hidden = url; // up to `hidden` nothing is shown
    bool hiding = false;
    size_t n = 0;
    for (const char *p = url; *p; p++) {
        const char *value_end = secret_value(url, p) ? p + strcspn(p, "&;#") : p;
        if (p == begin && at > hidden)
            hidden = at;
        if (value_end > hidden)
            hidden = value_end;
        const char *out = p >= hidden ? p : hiding ? "" : "***";
        hiding = p < hidden;
        for (size_t left = hiding ? strlen(out) : 1; left && n + 1 < size; left--)
            to[n++] = *out++;
    }
    if (size)
        to[n] = 0;
    return to;
}
