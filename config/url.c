#include "config/url.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum url_kind config_url_kind(const char *url)
{
    static const struct {
        const char *prefix;
        enum url_kind kind;
    } schemes[] = {
        {"rtsp:", URL_RTSP}, {"rtsps:", URL_RTSP}, {"tcp:", URL_TCP},
        {"unix:", URL_UNIX}, {"pipe:", URL_PIPE},  {"file:", URL_FILE},
    };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncasecmp(url, schemes[i].prefix, strlen(schemes[i].prefix)) == 0)
            return schemes[i].kind;
    return *url == 0 || strstr(url, "://") ? URL_NONE : URL_FILE;
}

bool config_url_is_rtsps(const char *url)
{
    return strncasecmp(url, "rtsps:", strlen("rtsps:")) == 0;
}

const char *config_url_path(const char *url)
{
    static const char scheme[] = "file:";
    return strncasecmp(url, scheme, strlen(scheme)) ? url : url + strlen(scheme);
}

int config_url_descriptor(const char *url)
{
    const char *digits = config_url_kind(url) == URL_PIPE ? strchr(url, ':') + 1 : "x";
    const size_t n = strspn(digits, "0123456789");
    return digits[n] || n > 9 ? -1 : atoi(digits);
}

// The authority of a URL is "user:password@host:port" and ends at the first of "/?#".
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

#define ESCAPES "in a user name, a password or a path write / ? # @ : % as %2F %3F %23 %40 %3A %25"

// Returns true if a host begins here that is no single word: it has a dot, a port or brackets.
static bool is_clear_host(const char *p)
{
    const size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");
    const bool ends = !p[n] || strchr("/?#", p[n]);
    return *p == '[' || (n > 0 && p[n] == ':' && isdigit((unsigned char)p[n + 1])) ||
           (n > 0 && ends && (memchr(p, '.', n) || (n == 9 && !strncasecmp(p, "localhost", n))));
}

// Returns true for "admin:12/34@192.0.2.1/": a password with one of "/?#" reads as a host and a
// port. A host with a dot counts as a user only if no other login stands right before the @, as in
// the path of a proxy.
static bool has_cut_login(const char *host, const char *end)
{
    const char *at = strrchr(end, '@');
    const size_t n = strcspn(host, ":/?#");
    if (!at || *host == '[' || !is_clear_host(at + 1))
        return false;
    if (!memchr(host, '.', n))
        return true;
    const char *segment = memrchr(end, '/', (size_t)(at - end));
    const bool other_login = segment && memchr(segment, ':', (size_t)(at - segment));
    return host[n] == ':' && strspn(host, "0123456789.") < n && !other_login;
}

static size_t count_decoded(const char *begin, const char *end)
{
    size_t n = 0;
    for (const char *p = begin; p < end; p++, n++)
        p += *p == '%' && end - p > 2 && isxdigit((unsigned char)p[1]) &&
                     isxdigit((unsigned char)p[2])
                 ? 2
                 : 0;
    return n;
}

static const char *network_mistake(const char *url)
{
    const char *begin = strstr(url, "://");
    if (!begin || !config_url_has_host(url))
        return "has no host, or an invalid port (scheme://host:port/..., port 1 to 65535, required "
               "for tcp; " ESCAPES ")";
    begin += 3;
    const char *end = begin + strcspn(begin, "/?#"), *host = begin;
    for (const char *p = begin; p < end; p++)
        host = *p == '@' ? p + 1 : host;
    if (has_cut_login(host, end))
        return "has an @ behind its host (" ESCAPES ")";
    if (config_url_kind(url) != URL_RTSP)
        return NULL;
    for (const char *p = host; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            return "has a blank or a control character (write a blank as %20)";
    const char *colon = memchr(begin, ':', (size_t)(host - begin));
    const char *user_end = colon ? colon : host > begin ? host - 1 : host;
    if (count_decoded(begin, user_end) >= URL_LOGIN_MAX ||
        (colon && count_decoded(colon + 1, host - 1) >= URL_LOGIN_MAX))
        return "has a user name or a password of more than 4095 bytes";
    if (strcspn(host, ":/?#") > 255)
        return "has a host of more than 255 bytes";
    // Leaves room for "rtsps://" and a port.
    return strlen(host) + 16 > URL_TEXT_MAX ? "is longer than 4080 bytes without user and password"
                                            : NULL;
}

// Examples: "admin:secret@192.0.2.1/stream", "admin:se/cret@192.0.2.1/stream",
// "192.0.2.1:554/stream", "rtsp//192.0.2.1/stream"
static bool lacks_scheme(const char *url)
{
    const size_t n = strcspn(url, "/?#");
    const char *at = memrchr(url, '@', n), *colon = memrchr(url, ':', n);
    const char *host = at ? at + 1 : url;
    const size_t digits = colon && colon >= host ? strspn(colon + 1, "0123456789") : 0;
    const bool port = digits > 0 && colon > host && colon + 1 + digits == url + n;
    const bool ipv4 = url + n > host && url[n] == '/' && strchr(host, '.') &&
                      strspn(host, "0123456789.") == (size_t)(url + n - host);
    const char *last = strrchr(url + n, '@');
    const bool cut_login = last && memchr(url, ':', n) && is_clear_host(last + 1);
    const bool login = cut_login || (at && memchr(url, ':', (size_t)(at - url)));
    return *url != '.' && (port || ipv4 || login || !strncasecmp(url, "rtsp//", 6) ||
                           !strncasecmp(url, "rtsps//", 7));
}

const char *config_url_mistake(const char *url)
{
    const enum url_kind kind = config_url_kind(url);
    if (kind == URL_NONE)
        return "is not an input that framed can read (rtsp:, rtsps:, tcp:, unix:, pipe:, file: or "
               "a path)";
    if (kind == URL_RTSP || kind == URL_TCP)
        return network_mistake(url);
    if (kind == URL_PIPE && config_url_descriptor(url) < 0)
        return "does not name a descriptor (pipe:N; pipe:0 is standard input)";
    if (!strcasecmp(url, "unix:") || !strcasecmp(url, "file:"))
        return "has no path (unix:PATH or file:PATH)";
    if (kind == URL_FILE && config_url_path(url) == url && lacks_scheme(url))
        return "has no scheme (rtsp://HOST/PATH, rtsps:// or tcp://; for a file write file:PATH)";
    return NULL;
}

const char *config_url_libav_mistake(const char *url)
{
    const char *authority = strstr(url, "://") + 3;
    const size_t n = strcspn(authority, "/?#");
    const char *at = memrchr(authority, '@', n);
    if (at && at - authority > 127)
        return "has a user name and password of more than 127 bytes together";
    return strlen(authority + n) > 1000 ? "has a path of more than 1000 bytes" : NULL;
}

// Returns the first of the characters `set` at or after `p` that is not inside ${...}, or the end.
static const char *url_find(const char *p, const char *set)
{
    while (*p && !strchr(set, *p)) {
        const char *close = strncmp(p, "${", 2) == 0 ? strchr(p, '}') : NULL;
        p = close ? close + 1 : p + 1;
    }
    return p;
}

static const char *url_last_at(const char *p)
{
    const char *last = NULL;
    for (p = url_find(p, "@"); *p; p = url_find(p + 1, "@"))
        last = p;
    return last;
}

const char *config_url_login(const char *url, size_t *length)
{
    const char *scheme = strstr(url, "://"), *begin = scheme ? scheme + 3 : url;
    const char *at = url_last_at(begin);
    *length = at ? (size_t)(at - begin) : 0;
    return at && (scheme || memchr(url, ':', *length)) ? begin : NULL;
}

const char *config_url_query(const char *url)
{
    const char *scheme = strstr(url, "://");
    return scheme ? url_find(scheme + 3, "?#") : url + strlen(url);
}

// Returns true for HOST, HOST:PORT or nothing, each of them possibly a ${...}.
static bool is_authority(const char *p, const char *end)
{
    bool port = false, brackets = false;
    while (p < end) {
        const char *close = strncmp(p, "${", 2) == 0 ? strchr(p, '}') : NULL;
        if (close) {
            p = close + 1;
            continue;
        }
        brackets = *p == '[' || (brackets && *p != ']');
        if (*p == ':' && !brackets && !port)
            port = true;
        else if (port ? !isdigit((unsigned char)*p)
                      : !isalnum((unsigned char)*p) && !strchr("._-%[]", *p) &&
                            !(*p == ':' && brackets))
            return false;
        p++;
    }
    return true;
}

// A path may contain a login too ("user=admin_password=..."): only the part before the first
// segment with a '=' is shown.
static const char *end_of_shown_path(const char *path, const char *end)
{
    const char *equals = url_find(path, "=");
    if (equals >= end)
        return end;
    while (equals > path && equals[-1] != '/')
        equals--;
    return equals;
}

static void put_text(char *to, size_t size, size_t *n, const char *text, size_t length)
{
    for (; length && *n + 1 < size; length--)
        to[(*n)++] = *text++;
}

char *config_url_shown(const char *url, char *to, size_t size)
{
    static const char hidden[] = "***";
    const char *scheme = strstr(url, "://"), *query = config_url_query(url);
    size_t n = 0, length;
    const char *login = config_url_login(url, &length);
    const char *host = login ? login + length + 1 : scheme ? scheme + 3 : url;
    if (scheme) {
        const char *slash = url_find(scheme + 3, "/"), *end = url_find(host, "/?#"), *last = end;
        while (last > host && strchr(":,.;)'\"", last[-1])) // part of the sentence around it
            last--;
        put_text(to, size, &n, url, (size_t)(scheme + 3 - url));
        // An @ after a '/', '?' or '#' may belong to the password, or to the part after the host.
        const bool clear = host <= query && (!login || slash >= host - 1);
        if (clear && is_authority(host, last)) {
            const char *shown = end_of_shown_path(end, query);
            put_text(to, size, &n, host, (size_t)(shown - host));
            put_text(to, size, &n, hidden, shown < query ? 3 : 0);
        } else {
            put_text(to, size, &n, hidden, 3);
        }
    } else if (login) {
        put_text(to, size, &n, hidden, 3);
    } else {
        put_text(to, size, &n, url, strlen(url));
    }
    if (size)
        to[n] = 0;
    return to;
}

char *shown(const char *raw, char *to, size_t size)
{
    config_url_shown(raw, to, size);
    for (char *c = to; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    }
    return to;
}

static void print_encoded(FILE *to, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        fprintf(to, *p < 0x80 && (isalnum(*p) || strchr("-._~", *p)) ? "%c" : "%%%02X", *p);
}

int config_url_with_login(char **ret, const char *url, const char *user, const char *password)
{
    char *text = NULL;
    size_t size;
    if (!config_url_has_host(url))
        return -EINVAL;
    const char *begin = strstr(url, "://") + 3, *host = begin;
    const char *end = begin + strcspn(begin, "/?#");
    for (const char *p = begin; p < end; p++)
        host = *p == '@' ? p + 1 : host;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return -ENOMEM;
    fprintf(to, "%.*s", (int)(begin - url), url);
    print_encoded(to, user);
    putc(':', to);
    print_encoded(to, password);
    fprintf(to, "@%s", host);
    if (fclose(to) != 0) {
        free(text);
        return -ENOMEM;
    }
    *ret = text;
    return 0;
}

// --- brokers

enum { MQTT_PORT = 1883, MQTT_PORT_OF_TLS = 8883 };

const char *mqtt_url_parse(struct mqtt_url *ret, const char *url)
{
    static const char plain[] = "mqtt://", tls[] = "mqtts://";
    *ret = (struct mqtt_url){.port = MQTT_PORT};
    if (strncasecmp(url, tls, strlen(tls)) == 0)
        *ret = (struct mqtt_url){.port = MQTT_PORT_OF_TLS, .tls = true};
    else if (strncasecmp(url, plain, strlen(plain)) != 0)
        return "is no address of a broker";
    const char *host = url + strlen(ret->tls ? tls : plain);
    if (strchr(host, '@'))
        return "has a user or a password in it, which stand beside it";
    const bool brackets = *host == '[';
    host += brackets;
    const size_t length = strcspn(host, brackets ? "]" : ":/?#");
    const char *rest = host + length;
    if (length == 0 || length >= sizeof ret->host || (brackets && *rest != ']'))
        return "has no host, or one that cannot be";
    memcpy(ret->host, host, length);
    rest += brackets;
    if (*rest == ':') {
        const size_t digits = strspn(++rest, "0123456789");
        ret->port = digits > 0 && digits <= 5 ? atoi(rest) : 0;
        rest += digits;
    }
    if (ret->port < 1 || ret->port > 65535)
        return "has an invalid port";
    return *rest == 0 || strcmp(rest, "/") == 0 ? NULL : "goes on behind the host";
}
