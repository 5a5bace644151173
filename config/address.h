// Addresses that framed listens on or writes to: sinks, the control socket, HTTP.
#ifndef FRAMED_CONFIG_ADDRESS_H
#define FRAMED_CONFIG_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

enum sink_kind { SINK_NONE, SINK_UNIX, SINK_TCP, SINK_FILE, SINK_RING, SINK_RTSP };

// Longest path of a socket, in bytes: the system's limit, less a dot and the largest process
// number. Until clients may connect, the socket's name ends with these two.
#define SOCKET_PATH_MAX 99

// "unix:PATH", "ring:PATH", "tcp:HOST:PORT" ("tcp:PORT" is loopback), "file:PATH",
// "rtsp://HOST/PATH"
struct sink_address {
    enum sink_kind kind;
    char *path;      // unix and ring: at most SOCKET_PATH_MAX bytes; file
    char *canonical; // the path without empty and "." parts, or with its folder resolved
    bool timed;      // file: the path is a pattern whose name holds a time
    char *host;      // tcp: an IP address or "localhost"; NULL is 127.0.0.1
    int port;        // tcp; 0 lets the system choose
    char *url;       // rtsp: may contain a password, print it only through config_url_shown
};

// Address of the control socket. If neither off nor a path, the socket is at its default place.
struct control_address {
    struct sink_address at; // unix, or SINK_NONE
    bool off;
};
// Address of the HTTP server: "HOST:PORT", "PORT" (on loopback) or "unix:PATH".
struct http_address {
    struct sink_address at; // tcp or unix; SINK_NONE: no HTTP
};

// Each parses `text` into *ret, which address_free() frees. Returns 0; -EINVAL with *wrong set to
// the mistake in the text; or -ENOMEM. *ret is written on 0 only.
int address_parse(struct sink_address *ret, const char *text, const char **wrong);
int address_copy(struct sink_address *ret, const struct sink_address *from); // 0 or -ENOMEM
// "auto", "off" or a path with a slash, also after "unix:".
int address_parse_control(struct control_address *ret, const char *text, const char **wrong);
// "off", "HOST:PORT" or "PORT", also after "tcp:", or "unix:PATH".
int address_parse_http(struct http_address *ret, const char *text, const char **wrong);
// Returns the prefix, such as "unix:"; "" if the kind has none.
const char *address_scheme(enum sink_kind);
// Returns the IP address that a tcp address listens on. Needs no name server.
const char *address_host(const struct sink_address *);
// Returns true if the IP address stands for all addresses of this machine.
bool address_is_wildcard(const char *host);
// Resolves the address's folder if it exists, so that two spellings of one path are equal. Reads
// the file system. Returns 0 or -ENOMEM.
int address_resolve(struct sink_address *);
// Returns the path, resolved after address_resolve(); NULL if the address has no path.
const char *address_canonical(const struct sink_address *);
// Returns true if only programs on this machine can reach the address.
bool address_is_local(const struct sink_address *);
void address_free(struct sink_address *); // frees its memory and empties it
bool address_equal(const struct sink_address *, const struct sink_address *);
// Returns true if two sinks cannot exist side by side: they have the same path, port or URL.
bool address_collides(const struct sink_address *, const struct sink_address *);

// --- paths of files with the local time in their name: "/data/gate-%Y%m%d-%H%M%S.y4m"

// strftime's conversions that a name may contain. Each matches a fixed pattern in every locale, so
// that files of an earlier run are recognised.
#define PATTERN_ALLOWED "%Y %m %d %j %F %H %M %S %s %z, %% for a percent sign"

// Returns the mistake in a path's percent signs, or NULL.
const char *pattern_wrong(const char *path);
// The functions below require a path that pattern_wrong accepts.
bool pattern_has_time(const char *path);
void pattern_unescape(char *path); // path without a time: "%%" becomes "%"
// Writes the path of a file that begins at `time`. Returns 0 or -ENAMETOOLONG.
int pattern_at(const char *path, time_t time, char *to, size_t size);
// Returns true if the path gives `name`, a file's name without its folder, at some time, perhaps
// with a number before the ending ("gate-20240131.2.mp4").
bool pattern_matches(const char *path, const char *name);

#endif
