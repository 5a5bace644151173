// Addresses that framed listens on or writes to; of sinks: "unix:PATH", "ring:PATH",
// "tcp:HOST:PORT", "tcp:PORT", "file:PATH".
#ifndef FRAMED_CONFIG_ADDRESS_H
#define FRAMED_CONFIG_ADDRESS_H

#include <stdbool.h>

enum sink_kind { SINK_NONE, SINK_UNIX, SINK_TCP, SINK_FILE, SINK_RING };

// Bytes of a socket's path: what the system takes, less a dot and the largest process number, which
// the name has until clients may connect.
#define SOCKET_PATH_MAX 99

// "unix:PATH", "ring:PATH", "tcp:HOST:PORT" ("tcp:PORT" is loopback), "file:PATH"
struct sink_address {
    enum sink_kind kind;
    char *path;      // unix and ring: of SOCKET_PATH_MAX bytes at most; file
    char *canonical; // the path with its folder resolved; NULL: as `path`
    bool timed;      // file: the path is a pattern whose name holds a time (config/pattern.h)
    char *host;      // tcp: an IP address or "localhost"; NULL is 127.0.0.1
    int port;        // tcp; 0 lets the system choose
};

// Where the control socket is: neither off nor at a path is the default place.
struct control_address {
    struct sink_address at; // unix, or SINK_NONE
    bool off;
};
// Where HTTP is served: "HOST:PORT", "PORT" (on loopback) or "unix:PATH".
struct http_address {
    struct sink_address at; // tcp or unix; SINK_NONE: nowhere
};

// 0; -EINVAL with *wrong set to what is wrong with it; -ENOMEM. Written on 0 only.
int address_parse(struct sink_address *ret, const char *text, const char **wrong);
int address_copy(struct sink_address *ret, const struct sink_address *from); // 0 or -ENOMEM
// "auto", "off" or a path with a slash; "off", "HOST:PORT", "PORT" or "unix:PATH"; also with the
// scheme that a sink has there. As address_parse.
int address_parse_control(struct control_address *ret, const char *text, const char **wrong);
int address_parse_http(struct http_address *ret, const char *text, const char **wrong);
// "unix:"; "" for none.
const char *address_scheme(enum sink_kind);
// Of a tcp address the number to listen on, for which nobody has to be asked.
const char *address_host(const struct sink_address *);
// Whether only programs on this box can reach it.
bool address_is_local(const struct sink_address *);
void address_free(struct sink_address *); // and empties it
bool address_equal(const struct sink_address *, const struct sink_address *);
// Whether two sinks cannot exist side by side: they have the same path or port.
bool address_collides(const struct sink_address *, const struct sink_address *);

#endif
