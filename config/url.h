// URLs of inputs: their kind and parts, and the form in which they may be shown.
#ifndef FRAMED_CONFIG_URL_H
#define FRAMED_CONFIG_URL_H

#include <stdbool.h>
#include <stddef.h>

// URL_NONE: framed cannot read it. A path without a scheme is a file.
enum url_kind { URL_NONE, URL_RTSP, URL_TCP, URL_UNIX, URL_PIPE, URL_FILE };
enum url_kind config_url_kind(const char *url);
bool config_url_is_rtsps(const char *url);
// The path of a URL_FILE, without "file:".
const char *config_url_path(const char *url);
// Whether a network URL names a host, and its port, if given, is 1 to 65535. tcp has no default
// port and must name one.
bool config_url_has_host(const char *url);
enum {
    URL_TEXT_MAX = 4096,  // bytes of an RTSP URL without user and password, with a zero
    URL_LOGIN_MAX = 4096, // of its user or password, decoded, with a zero
};
// A clause for people on why an input cannot be read ("has no host ..."), static; NULL: it can.
const char *config_url_mistake(const char *url);
// The same for libavformat's RTSP client and server, which cut long parts of a URL; it has a host.
const char *config_url_libav_mistake(const char *url);
// The file descriptor that "pipe:" (0) or "pipe:N" reads; -1 for any other URL.
int config_url_descriptor(const char *url);

// Copies `url` to `to` as logs and answers show it, cut to `size` bytes: scheme, host, port and
// path, without user, password, query and path segments that hold a '='. A text that is no URL is
// copied whole unless it holds a login. Returns `to`. To show a URL of the configuration, pass it
// as it was written (object_written).
char *config_url_shown(const char *url, char *to, size_t size);
// A user's text as a message shows it: the same, with ? for control characters. Returns `to`.
char *shown(const char *raw, char *to, size_t size);
// Makes *ret, which the caller frees, of a network URL: with this user and password, encoded, in
// place of those that it may have. 0; -EINVAL: it names no host; -ENOMEM.
int config_url_with_login(char **ret, const char *url, const char *user, const char *password);
// "user:password" in front of a URL's host, and its length; NULL: there is none.
const char *config_url_login(const char *url, size_t *length);
// Where a URL's query or fragment begins, or its end.
const char *config_url_query(const char *url);

#endif
