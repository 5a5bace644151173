// Addresses of sinks: "unix:PATH", "ring:PATH", "tcp:HOST:PORT", "tcp:PORT", "file:PATH".
#ifndef FRAMED_CONFIG_ADDRESS_H
#define FRAMED_CONFIG_ADDRESS_H

#include "config/config.h"

// 0; -EINVAL with *wrong set to what is wrong with it; -ENOMEM. Written on 0 only.
int address_parse(struct sink_address *ret, const char *text, const char **wrong);
int address_copy(struct sink_address *ret, const struct sink_address *from); // 0 or -ENOMEM
void address_free(struct sink_address *);                                    // and empties it
// Whether two sinks would be in each other's way.
bool address_collides(const struct sink_address *, const struct sink_address *);

#endif
