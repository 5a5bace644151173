#include "config/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/url.h"

static const char *skip_scheme(const char *text, const char *scheme)
{
    size_t n = strlen(scheme);
    return strncmp(text, scheme, n) ? NULL : text + n;
}

#define TEXT(number)    #number
#define TEXT_OF(number) TEXT(number)

static const char *path_wrong(const char *path, enum sink_kind kind)
{
    if (!*path)
        return "has no path";
    if (kind != SINK_FILE && strlen(path) > SOCKET_PATH_MAX)
        return "has a path that is too long for a socket: " TEXT_OF(SOCKET_PATH_MAX) " bytes";
    return kind == SINK_FILE ? pattern_wrong(path) : NULL;
}

// Splits "PORT", "HOST:PORT" or "[IPv6]:PORT" into the host, its length (0: none) and the port.
// Returns NULL or the mistake.
static const char *split_host_port(const char *text, const char **host, size_t *length, int *port)
{
    const char *colon = strrchr(text, ':');
    const char *digits = colon ? colon + 1 : text;
    size_t n = strspn(digits, "0123456789");
    if (!n || n > 5 || digits[n] || atoi(digits) > 65535)
        return "has no port from 0 to 65535";
    *port = atoi(digits);
    *host = text;
    *length = colon ? (size_t)(colon - text) : 0;
    if (!colon)
        return NULL;
    if (*length >= 2 && text[0] == '[' && colon[-1] == ']') {
        *host = text + 1;
        *length -= 2;
    } else if (memchr(text, ':', *length)) {
        return "has an IPv6 host without brackets (tcp:[::1]:PORT)";
    }
    return *length ? NULL : "has no host before its port";
}

// Returns true for an IP address. An interface may follow an IPv6 address: "fe80::1%eth0".
static bool is_number(const char *host)
{
    char number[INET6_ADDRSTRLEN];
    struct in6_addr address;
    snprintf(number, sizeof number, "%.*s", (int)strcspn(host, "%"), host);
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, number, &address) == 1;
}

// Names are refused: a daemon must not wait for a name server before it listens.
static const char *host_wrong(const char *host, size_t length)
{
    char text[64]; // has room for an IP address and an interface
    snprintf(text, sizeof text, "%.*s", (int)length, host);
    return !strcmp(text, "localhost") || is_number(text)
               ? NULL
               : "has a host that is neither an IP address nor localhost: names are not looked up";
}

static bool is_printable(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c < ' ' || *c == 127)
            return false;
    }
    return true;
}

// Removes empty and "." parts from a folder's name. If no other part is left, the name is empty.
static void tidy_folder(char *folder)
{
    char *to = folder + (*folder == '/'), *rest = NULL;
    char *part = strtok_r(to, "/", &rest);
    for (; part; part = strtok_r(NULL, "/", &rest)) {
        if (!strcmp(part, "."))
            continue;
        const size_t n = strlen(part);
        if (to > folder && to[-1] != '/')
            *to++ = '/';
        memmove(to, part, n);
        to += n;
    }
    *to = 0;
}

// Joins a folder and a file's name into *ret.
static int join_path(char **ret, const char *folder, const char *name)
{
    return asprintf(ret, "%s/%s", strcmp(folder, "/") ? folder : "", name) < 0 ? -ENOMEM : 0;
}

static const char *name_in_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Returns a path's folder, tidied, which the caller frees; NULL: no memory.
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash > path ? (size_t)(slash - path) : 1) : strdup(".");
    if (folder)
        tidy_folder(folder);
    if (folder && !*folder)
        strcpy(folder, ".");
    return folder;
}

static int tidy_path(char **ret, const char *path)
{
    char *folder = folder_of(path);
    const int rc = folder ? join_path(ret, folder, name_in_folder(path)) : -ENOMEM;
    free(folder);
    return rc;
}

int address_resolve(struct sink_address *address)
{
    char *folder = address->path ? folder_of(address->path) : NULL, *resolved = NULL, *path = NULL;
    int rc = address->path && !folder ? -ENOMEM : 0;
    if (folder)
        resolved = realpath(folder, NULL);
    if (resolved && (rc = join_path(&path, resolved, name_in_folder(address->path))) == 0) {
        free(address->canonical);
        address->canonical = path;
    }
    free(resolved);
    free(folder);
    return rc;
}

static const struct {
    const char *scheme;
    enum sink_kind kind;
} paths[] = {{"unix:", SINK_UNIX}, {"ring:", SINK_RING}, {"file:", SINK_FILE}};

int address_parse(struct sink_address *ret, const char *text, const char **wrong)
{
    struct sink_address address = {.kind = SINK_NONE};
    const char *rest = NULL, *host = NULL;
    size_t length = 0;
    for (size_t i = 0; i < sizeof paths / sizeof *paths && !rest; i++) {
        rest = skip_scheme(text, paths[i].scheme);
        address.kind = rest ? paths[i].kind : SINK_NONE;
    }
    if (rest) {
        *wrong = path_wrong(rest, address.kind);
    } else if ((rest = skip_scheme(text, "tcp:"))) {
        address.kind = SINK_TCP;
        *wrong = split_host_port(rest, &host, &length, &address.port);
        if (!*wrong && length)
            *wrong = host_wrong(host, length);
    } else if (skip_scheme(text, "rtsp:")) {
        address.kind = SINK_RTSP;
        rest = text;
        *wrong = config_url_mistake(text);
        if (!*wrong)
            *wrong = config_url_libav_mistake(text);
    } else {
        *wrong = "does not begin with a known kind of sink";
    }
    if (!*wrong && !is_printable(text))
        *wrong = "contains a control character";
    if (*wrong)
        return -EINVAL;
    char **part = address.kind == SINK_TCP    ? &address.host
                  : address.kind == SINK_RTSP ? &address.url
                                              : &address.path;
    if (address.kind != SINK_TCP || length) {
        *part = length ? strndup(host, length) : strdup(rest);
        if (!*part)
            return -ENOMEM;
    }
    if (address.kind == SINK_FILE) {
        address.timed = pattern_has_time(address.path);
        if (!address.timed)
            pattern_unescape(address.path);
    }
    if (address.path && tidy_path(&address.canonical, address.path) < 0) {
        address_free(&address);
        return -ENOMEM;
    }
    *ret = address;
    return 0;
}

// Parses `text` as if `scheme` stood before it.
static int parse_with(const char *scheme, const char *text, struct sink_address *ret,
                      const char **wrong)
{
    char *whole;
    if (asprintf(&whole, "%s%s", scheme, text) < 0)
        return -ENOMEM;
    int rc = address_parse(ret, whole, wrong);
    free(whole);
    return rc;
}

// YAML 1.1 writes false for off.
static bool is_off(const char *text)
{
    return !strcmp(text, "off") || !strcmp(text, "false");
}

int address_parse_control(struct control_address *ret, const char *text, const char **wrong)
{
    struct control_address address = {.off = is_off(text)};
    int rc = 0;
    *wrong = NULL;
    if (!address.off && strcmp(text, "auto")) {
        const char *path = skip_scheme(text, "unix:");
        if (!strchr(text, '/'))
            *wrong = "is not a path: it has no slash";
        rc = *wrong ? -EINVAL : parse_with("unix:", path ? path : text, &address.at, wrong);
    }
    if (rc == 0)
        *ret = address;
    return rc;
}

int address_parse_http(struct http_address *ret, const char *text, const char **wrong)
{
    struct http_address address = {0};
    int rc = 0;
    *wrong = NULL;
    if (skip_scheme(text, "unix:") || skip_scheme(text, "tcp:"))
        rc = address_parse(&address.at, text, wrong);
    else if (!is_off(text))
        rc = parse_with("tcp:", text, &address.at, wrong);
    if (rc == 0)
        *ret = address;
    return rc;
}

const char *address_scheme(enum sink_kind kind)
{
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (paths[i].kind == kind)
            return paths[i].scheme;
    return kind == SINK_TCP ? "tcp:" : "";
}

const char *address_host(const struct sink_address *address)
{
    return address->host && strcmp(address->host, "localhost") ? address->host : "127.0.0.1";
}

bool address_is_local(const struct sink_address *address)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (address->kind != SINK_TCP)
        return true;
    if (inet_pton(AF_INET, address_host(address), &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
    return inet_pton(AF_INET6, address_host(address), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

int address_copy(struct sink_address *ret, const struct sink_address *from)
{
    *ret = (struct sink_address){.kind = from->kind, .timed = from->timed, .port = from->port};
    if ((from->path && !(ret->path = strdup(from->path))) ||
        (from->canonical && !(ret->canonical = strdup(from->canonical))) ||
        (from->host && !(ret->host = strdup(from->host))) ||
        (from->url && !(ret->url = strdup(from->url)))) {
        address_free(ret);
        return -ENOMEM;
    }
    return 0;
}

void address_free(struct sink_address *address)
{
    free(address->path);
    free(address->canonical);
    free(address->host);
    free(address->url);
    *address = (struct sink_address){.kind = SINK_NONE};
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool address_equal(const struct sink_address *a, const struct sink_address *b)
{
    return a->kind == b->kind && a->timed == b->timed && a->port == b->port &&
           same_text(a->path, b->path) && same_text(a->host, b->host) && same_text(a->url, b->url);
}

bool address_is_wildcard(const char *host)
{
    return !strcmp(host, "0.0.0.0") || !strcmp(host, "::");
}

const char *address_canonical(const struct sink_address *address)
{
    return address->canonical ? address->canonical : address->path;
}

bool address_collides(const struct sink_address *a, const struct sink_address *b)
{
    if (a->kind == SINK_TCP && b->kind == SINK_TCP) {
        return a->port && a->port == b->port &&
               (!strcmp(address_host(a), address_host(b)) || address_is_wildcard(address_host(a)) ||
                address_is_wildcard(address_host(b)));
    }
    if (a->kind == SINK_RTSP && b->kind == SINK_RTSP)
        return !strcmp(a->url, b->url);
    return a->path && b->path && !strcmp(address_canonical(a), address_canonical(b));
}

// --- patterns of paths

#define DIGIT  "[0-9]"
#define DIGIT2 DIGIT DIGIT
#define DIGIT4 DIGIT2 DIGIT2

static const struct {
    char letter;
    const char *glob;
} conversions[] = {
    {'Y', DIGIT4},
    {'m', DIGIT2},
    {'d', DIGIT2},
    {'j', DIGIT2 DIGIT},
    {'F', DIGIT4 "-" DIGIT2 "-" DIGIT2},
    {'H', DIGIT2},
    {'M', DIGIT2},
    {'S', DIGIT2},
    {'s', DIGIT "*"},
    {'z', "[+-]" DIGIT4},
    {'%', "%"},
};

// Returns the glob for the conversion at "%X", or NULL.
static const char *glob_of(const char *percent)
{
    for (size_t i = 0; i < sizeof conversions / sizeof *conversions; i++) {
        if (percent[1] == conversions[i].letter)
            return conversions[i].glob;
    }
    return NULL;
}

const char *pattern_wrong(const char *path)
{
    for (const char *p = strchr(path, '%'); p; p = strchr(p + 2, '%')) {
        if (!glob_of(p))
            return "has a percent sign without a known conversion: " PATTERN_ALLOWED;
        if (p[1] != '%' && p < name_in_folder(path))
            return "has a time in the name of a folder: only the file's name can have one";
    }
    return NULL;
}

bool pattern_has_time(const char *path)
{
    for (const char *p = strchr(path, '%'); p; p = strchr(p + 2, '%')) {
        if (p[1] != '%')
            return true;
    }
    return false;
}

void pattern_unescape(char *path)
{
    char *to = path;
    for (const char *p = path; *p; p++) {
        *to++ = *p;
        p += *p == '%';
    }
    *to = 0;
}

int pattern_at(const char *path, time_t time, char *to, size_t size)
{
    struct tm local;
    localtime_r(&time, &local);
    return strftime(to, size, path, &local) > 0 ? 0 : -ENAMETOOLONG;
}

// Returns the bytes of `name` that match the glob of a conversion of fixed length; 0: no match.
static size_t match_glob(const char *glob, const char *name)
{
    size_t n = 0;
    for (; *glob; n++) {
        const bool digit = strncmp(glob, DIGIT, strlen(DIGIT)) == 0,
                   sign = strncmp(glob, "[+-]", 4) == 0;
        if (digit  ? !isdigit((unsigned char)name[n])
            : sign ? name[n] != '+' && name[n] != '-'
                   : name[n] != *glob)
            return 0;
        glob += digit ? strlen(DIGIT) : sign ? 4 : 1;
    }
    return n;
}

// `dot`: position in the pattern where a number may stand; NULL: none any more.
static bool matches_from(const char *p, const char *dot, const char *name)
{
    const size_t digits = p == dot && *name == '.' ? strspn(name + 1, "0123456789") : 0;
    if (digits > 0 && name[1] != '0' && matches_from(p, NULL, name + 1 + digits))
        return true;
    if (*p != '%')
        return *p == *name && (!*p || matches_from(p + 1, dot, name + 1));
    if (p[1] == 's') {
        for (size_t n = strspn(name, "0123456789"); n > 0; n--)
            if (matches_from(p + 2, dot, name + n))
                return true;
        return false;
    }
    const size_t n = match_glob(glob_of(p), name);
    return n > 0 && matches_from(p + 2, dot, name + n);
}

bool pattern_matches(const char *path, const char *name)
{
    const char *pattern = name_in_folder(path), *dot = strrchr(pattern, '.');
    return matches_from(pattern, dot && dot > pattern ? dot : pattern + strlen(pattern), name);
}
