#include "daemon/rtsp/url.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PORT_RTSP = 554, PORT_RTSPS = 322, PORT_RTSPS_OTHER = 7441 };

__attribute__((format(printf, 2, 3))) static int put_url(char ret[RTSP_URL_MAX], const char *format,
                                                         ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(ret, RTSP_URL_MAX, format, args);
    va_end(args);
    return n < 0 || n >= RTSP_URL_MAX ? -EINVAL : 0;
}

// Rejects blanks and line ends, which would end the URL in a request or inject a header.
static bool is_one_word(const char *text)
{
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            return false;
    return true;
}

// Returns the length of "scheme://"; 0: there is none.
static size_t scheme_length(const char *text)
{
    size_t n = 0;
    if (!isalpha((unsigned char)*text))
        return 0;
    while (isalnum((unsigned char)text[n]) || (text[n] && strchr("+-.", text[n])))
        n++;
    return strncmp(text + n, "://", 3) == 0 ? n + 3 : 0;
}

// Returns the beginning of the path, query or fragment, or the end.
static const char *authority_end(const char *authority)
{
    return authority + strcspn(authority, "/?#");
}

// Returns the position after user and password. The last '@' ends them: a password may contain '@'.
static const char *host_begin(const char *authority)
{
    const char *at = memrchr(authority, '@', (size_t)(authority_end(authority) - authority));
    return at ? at + 1 : authority;
}

// Decodes "%40"; keeps a '%' without two digits. -EINVAL: too long.
static int decode_percent(char *ret, size_t size, const char *begin, const char *end)
{
    size_t n = 0;
    for (const char *p = begin; p < end; p++) {
        char digits[3] = "";
        if (*p == '%' && end - p > 2 && isxdigit((unsigned char)p[1]) &&
            isxdigit((unsigned char)p[2]))
            memcpy(digits, p + 1, 2);
        const char byte = (char)strtol(digits, NULL, 16);
        if (n + 1 >= size)
            return -EINVAL;
        ret[n++] = byte ? byte : *p; // a zero byte would end the text
        p += byte ? 2 : 0;
    }
    ret[n] = 0;
    return 0;
}

static int parse_credentials(struct rtsp_url *ret, const char *begin, const char *end)
{
    if (begin == end)
        return 0;
    end--; // the '@'
    const char *colon = memchr(begin, ':', (size_t)(end - begin));
    int rc = decode_percent(ret->user, sizeof ret->user, begin, colon ? colon : end);
    if (rc == 0 && colon)
        rc = decode_percent(ret->password, sizeof ret->password, colon + 1, end);
    return rc;
}

// "host", "host:port", "[address]", "[address%25zone]:port". A zone is local to this machine:
// ret->host contains it, the request line does not.
static int parse_host(struct rtsp_url *ret, const char *begin, const char *end)
{
    const bool bracket = *begin == '[';
    const char *name = begin + bracket;
    const char *name_end = memchr(name, bracket ? ']' : ':', (size_t)(end - name));
    if (!name_end && bracket)
        return -EINVAL;
    name_end = name_end ? name_end : end;
    const char *rest = name_end + bracket; // ":port"
    if (name == name_end || decode_percent(ret->host, sizeof ret->host, name, name_end) < 0)
        return -EINVAL;
    const char *zone = bracket ? memchr(name, '%', (size_t)(name_end - name)) : NULL;
    const int shown = (int)((zone ? zone : name_end) - name);
    ret->port = ret->tls ? PORT_RTSPS : PORT_RTSP;
    ret->port_named = rest < end;
    if (ret->port_named) {
        const size_t digits = strspn(rest + 1, "0123456789");
        ret->port = digits <= 5 ? atoi(rest + 1) : 0;
        if (*rest != ':' || rest + 1 + digits != end || ret->port < 1 || ret->port > 65535)
            return -EINVAL;
    }
    return put_url(ret->text, "%s://%s%.*s%s%s", ret->tls ? "rtsps" : "rtsp", bracket ? "[" : "",
                   shown, name, bracket ? "]" : "", rest);
}

int rtsp_url_parse(struct rtsp_url *ret, const char *url)
{
    struct rtsp_url parsed = {0};
    const size_t scheme = scheme_length(url);
    parsed.tls = scheme == strlen("rtsps://") && strncasecmp(url, "rtsps", 5) == 0;
    if (!parsed.tls && !(scheme == strlen("rtsp://") && strncasecmp(url, "rtsp", 4) == 0))
        return -EINVAL;
    const char *authority = url + scheme;
    const char *host = host_begin(authority);
    if (!is_one_word(host))
        return -EINVAL;
    int rc = parse_credentials(&parsed, authority, host);
    if (rc == 0)
        rc = parse_host(&parsed, host, authority_end(authority));
    if (rc == 0)
        *ret = parsed;
    explicit_bzero(&parsed, sizeof parsed);
    return rc;
}

bool rtsp_url_take_other_port(struct rtsp_url *url)
{
    char text[RTSP_URL_MAX];
    const char *path = authority_end(url->text + scheme_length(url->text));
    if (!url->tls || url->port_named || url->port_changed ||
        put_url(text, "%.*s:%d%s", (int)(path - url->text), url->text, PORT_RTSPS_OTHER, path) < 0)
        return false;
    memcpy(url->text, text, sizeof text);
    url->port = PORT_RTSPS_OTHER;
    url->port_changed = true;
    return true;
}

// Returns true for an IPv6 address without brackets. *port: the start of its port, or the end.
static bool is_bare_ipv6(const char *host, const char *end, const char **port)
{
    const char *first = memchr(host, ':', (size_t)(end - host));
    const char *last = memrchr(host, ':', (size_t)(end - host));
    const char *dot = memchr(host, '.', (size_t)(end - host));
    *port = dot && last && dot < last ? last : end; // behind an embedded IPv4 address
    return *host != '[' && first != last;
}

// Repairs an absolute URL of a camera: one scheme, no user and password (they never appear in a
// request line), brackets around an IPv6 address.
static int repair_absolute(char ret[RTSP_URL_MAX], const char *url)
{
    const char *rest = url + scheme_length(url), *port;
    for (size_t again; (again = scheme_length(rest)) > 0; rest += again)
        url = rest;
    const int scheme = (int)(rest - url);
    const char *host = host_begin(rest), *end = authority_end(rest);
    if (host == end)
        return -EINVAL;
    if (is_bare_ipv6(host, end, &port))
        return put_url(ret, "%.*s[%.*s]%s", scheme, url, (int)(port - host), host, port);
    return put_url(ret, "%.*s%s", scheme, url, host);
}

// Resolves a reference as in RFC 3986, except that dots in its path stay.
static int resolve_reference(char ret[RTSP_URL_MAX], const char *base, const char *reference)
{
    const char *authority = base + scheme_length(base);
    const char *path = authority_end(authority);
    const char *path_end = path + strcspn(path, "?#");
    if (strncmp(reference, "//", 2) == 0) {
        char whole[RTSP_URL_MAX];
        const int rc = put_url(whole, "%.*s%s", (int)(authority - base) - 2, base, reference);
        return rc < 0 ? rc : repair_absolute(ret, whole);
    }
    if (*reference == '/')
        return put_url(ret, "%.*s%s", (int)(path - base), base, reference);
    if (*reference == '?')
        return put_url(ret, "%.*s%s", (int)(path_end - base), base, reference);
    const char *slash = memrchr(path, '/', (size_t)(path_end - path));
    return put_url(ret, "%.*s%s%s", (int)((slash ? slash + 1 : path) - base), base,
                   slash ? "" : "/", reference);
}

// Returns true if a URL without a scheme begins with a host: one with a port, an IPv4 address, or
// the requested host.
static bool begins_with_host(const char *text, const char *asked)
{
    const size_t n = strcspn(text, "/?#");
    const char *host = asked + scheme_length(asked);
    const size_t bytes = strcspn(host, ":/?#");
    return memchr(text, ':', n) || (n > 0 && strspn(text, "0123456789.") == n) ||
           (n > 0 && n == bytes && strncasecmp(text, host, n) == 0);
}

static int repair_base(char ret[RTSP_URL_MAX], const char *base, const char *asked)
{
    char whole[RTSP_URL_MAX];
    if (!is_one_word(base))
        return -EINVAL;
    if (scheme_length(base) > 0)
        return repair_absolute(ret, base);
    if (!begins_with_host(base, asked))
        return resolve_reference(ret, asked, base);
    const int rc = put_url(whole, "%.*s%s", (int)scheme_length(asked), asked, base);
    return rc < 0 ? rc : repair_absolute(ret, whole);
}

int rtsp_url_base(char ret[RTSP_URL_MAX], const char *content_base, const char *content_location,
                  const char *asked)
{
    const char *const said[] = {content_base, content_location};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i] && *said[i] && strcmp(said[i], "*") != 0 &&
            repair_base(ret, said[i], asked) == 0)
            return 0;
    return put_url(ret, "%s", asked);
}

int rtsp_url_of_track(char ret[RTSP_URL_MAX], const char *base, const char *control, bool merged)
{
    if (!control || !*control || strcmp(control, "*") == 0)
        return put_url(ret, "%s", base);
    if (!is_one_word(control))
        return -EINVAL;
    if (scheme_length(control) > 0)
        return repair_absolute(ret, control);
    if (merged)
        return resolve_reference(ret, base, control);
    const char *slash = strrchr(base, '/');
    const bool joined = (slash && !slash[1]) || *control == '/' || *control == '?';
    return put_url(ret, "%s%s%s", base, joined ? "" : "/", control);
}
