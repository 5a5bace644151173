// URLs of inputs: their kind and parts, and the form in which they may be shown; and addresses of
// MQTT brokers.
#ifndef FRAMED_CONFIG_URL_H
#define FRAMED_CONFIG_URL_H

#include <stdbool.h>
#include <stddef.h>

// URL_NONE: framed cannot read it. A path without a scheme is a file.
enum url_kind { URL_NONE, URL_RTSP, URL_TCP, URL_UNIX, URL_PIPE, URL_FILE };
enum url_kind config_url_kind(const char *url);
bool config_url_is_rtsps(const char *url);
// Returns the path of a URL_FILE, without "file:".
const char *config_url_path(const char *url);
// Returns true if a network URL has a host and a valid port, 1 to 65535, if any. tcp has no default
// port and requires one.
bool config_url_has_host(const char *url);
enum {
    URL_TEXT_MAX = 4096,  // bytes of an RTSP URL without user and password, with a zero
    URL_LOGIN_MAX = 4096, // of its user or password, decoded, with a zero
};
// Returns why an input cannot be read, as a static clause ("has no host ..."); NULL: it can.
const char *config_url_mistake(const char *url);
// Same for libavformat's RTSP client and server, which cut long parts of a URL; it needs a host.
const char *config_url_libav_mistake(const char *url);
// Returns the file descriptor that "pipe:" (0) or "pipe:N" reads; -1 for any other URL.
int config_url_descriptor(const char *url);

// Copies `url` to `to` as logs and answers show it, cut to `size` bytes: scheme, host, port and
// path, without user, password, query, and the path from a segment with a '=' on. A text that is no
// URL is copied whole unless it contains a login. Returns `to`. Pass a URL of the configuration as
// it was written (object_written).
char *config_url_shown(const char *url, char *to, size_t size);
// Copies a user's text for a message: as above, with ? for control characters. Returns `to`.
char *shown(const char *raw, char *to, size_t size);
// Sets *ret, which the caller frees, to a network URL with this user and password, encoded, in
// place of its own. Returns 0; -EINVAL: it has no host; or -ENOMEM.
int config_url_with_login(char **ret, const char *url, const char *user, const char *password);
// Returns "user:password" in front of a URL's host, and its length; NULL: none.
const char *config_url_login(const char *url, size_t *length);
// Returns the start of a URL's query or fragment, or its end.
const char *config_url_query(const char *url);

struct mqtt_url {
    char host[256]; // a name, or an address without brackets
    int port;
    bool tls;
};

// Parses mqtt://HOST[:PORT] or mqtts://HOST[:PORT]. Returns NULL, or the mistake in the URL.
const char *mqtt_url_parse(struct mqtt_url *ret, const char *url);

#endif
