// Addresses that framed listens on or writes to; of sinks: "unix:PATH", "ring:PATH",
// "tcp:HOST:PORT", "tcp:PORT", "file:PATH".
#ifndef FRAMED_CONFIG_ADDRESS_H
#define FRAMED_CONFIG_ADDRESS_H

#include "config/config.h"

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
// Whether two sinks would be in each other's way.
bool address_collides(const struct sink_address *, const struct sink_address *);

#endif
