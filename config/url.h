// URLs of inputs: their kind and parts, and the secrets in them, which must never be shown.
#ifndef FRAMED_CONFIG_URL_H
#define FRAMED_CONFIG_URL_H

#include <stdbool.h>
#include <stddef.h>

// URL_NONE: framed cannot read it. A path without a scheme is a file.
enum url_kind { URL_NONE, URL_RTSP, URL_TCP, URL_UNIX, URL_PIPE, URL_FILE };
enum url_kind config_url_kind(const char *url);
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

// Copies `url` to `to` with user and password replaced ("rtsp://***@host/"), cut to `size` bytes.
// Returns `to`.
char *config_url_redacted(const char *url, char *to, size_t size);
// Makes *ret, which the caller frees, of a network URL: with this user and password, encoded, in
// place of those that it may have. 0; -EINVAL: it names no host; -ENOMEM.
int config_url_with_login(char **ret, const char *url, const char *user, const char *password);
// Finds the first secret part of `url` at or after `from`, and its length in bytes. NULL: no more.
const char *config_url_secret(const char *url, const char *from, size_t *length);
// Whether the value of a URL parameter or demuxer option of this name is a secret: its name is, or
// ends in, a word like password or key.
bool config_name_is_secret(const char *name, size_t length);

#endif
