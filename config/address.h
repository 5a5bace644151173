// Addresses that framed listens on or writes to: sinks, the control socket, HTTP.
#ifndef FRAMED_CONFIG_ADDRESS_H
#define FRAMED_CONFIG_ADDRESS_H

#include <stdbool.h>

enum sink_kind { SINK_NONE, SINK_UNIX, SINK_TCP, SINK_FILE, SINK_RING, SINK_RTSP };

// Most bytes of a socket's path: the system's limit, less a dot and the largest process number,
// which are part of the name until clients may connect.
#define SOCKET_PATH_MAX 99

// "unix:PATH", "ring:PATH", "tcp:HOST:PORT" ("tcp:PORT" is loopback), "file:PATH",
// "rtsp://HOST/PATH"
struct sink_address {
    enum sink_kind kind;
    char *path;      // unix and ring: of SOCKET_PATH_MAX bytes at most; file
    char *canonical; // the path without empty and "." parts, or with its folder resolved
    bool timed;      // file: the path is a pattern whose name holds a time (config/pattern.h)
    char *host;      // tcp: an IP address or "localhost"; NULL is 127.0.0.1
    int port;        // tcp; 0 lets the system choose
    char *url;       // rtsp: may contain a password, print it only through config_url_shown
};

// Where the control socket is. If it is neither off nor at a path, it is at the default place.
struct control_address {
    struct sink_address at; // unix, or SINK_NONE
    bool off;
};
// Where HTTP is served: "HOST:PORT", "PORT" (on loopback) or "unix:PATH".
struct http_address {
    struct sink_address at; // tcp or unix; SINK_NONE: nowhere
};

// Each parses `text` into *ret, for address_free. 0; -EINVAL with *wrong set to what is wrong with
// the text; -ENOMEM. *ret is written on 0 only.
int address_parse(struct sink_address *ret, const char *text, const char **wrong);
int address_copy(struct sink_address *ret, const struct sink_address *from); // 0 or -ENOMEM
// "auto", "off" or a path with a slash, also after "unix:".
int address_parse_control(struct control_address *ret, const char *text, const char **wrong);
// "off", "HOST:PORT" or "PORT", also after "tcp:", or "unix:PATH".
int address_parse_http(struct http_address *ret, const char *text, const char **wrong);
// "unix:"; "" for none.
const char *address_scheme(enum sink_kind);
// The IP address that a tcp address listens on; no name server is asked.
const char *address_host(const struct sink_address *);
// Returns whether the IP address stands for all of this machine.
bool address_is_wildcard(const char *host);
// Resolves the folder of the address's path where that exists, so that two spellings of one path
// are equal. Reads the file system. 0 or -ENOMEM.
int address_resolve(struct sink_address *);
// Returns the path, resolved if it has been; NULL: the address has no path.
const char *address_canonical(const struct sink_address *);
// Whether only programs on this machine can reach it.
bool address_is_local(const struct sink_address *);
void address_free(struct sink_address *); // frees its memory and empties it
bool address_equal(const struct sink_address *, const struct sink_address *);
// Whether two sinks cannot exist side by side: they have the same path or port.
bool address_collides(const struct sink_address *, const struct sink_address *);

#endif
