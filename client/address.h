// The address of a daemon's frames: `unix:PATH`, `tcp:HOST:PORT` or `ring:PATH`.
#ifndef FRAMED_CLIENT_ADDRESS_H
#define FRAMED_CLIENT_ADDRESS_H

#include <sys/un.h>

enum address_kind { ADDRESS_UNIX, ADDRESS_TCP, ADDRESS_RING };

struct address {
    enum address_kind kind;
    struct sockaddr_un path; // unix and ring only
    char host[256], port[6]; // tcp only
};

// Returns 0, -EINVAL or -ENAMETOOLONG.
int address_parse(struct address *, const char *text);

// Returns a non-blocking socket whose connection may still be under way: when it becomes writable,
// the connection is made or has failed. `attempt` counts from 0 and selects one of a host's
// addresses. Negative errno; -EADDRNOTAVAIL: the host's name cannot be resolved.
int address_connect(const struct address *, unsigned attempt);

#endif
