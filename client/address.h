// Where frames come from: `unix:PATH`, `tcp:HOST:PORT` or `ring:PATH`.
#ifndef FRAMED_CLIENT_ADDRESS_H
#define FRAMED_CLIENT_ADDRESS_H

#include <sys/un.h>

enum address_kind { ADDRESS_UNIX, ADDRESS_TCP, ADDRESS_RING };

struct address {
    enum address_kind kind;
    struct sockaddr_un path; // of unix and ring
    char host[256], port[6]; // of tcp
};

// -EINVAL, -ENAMETOOLONG.
int address_parse(struct address *, const char *text);

// A socket that does not block and whose connection may still be under way: it is made, or has
// failed, when the socket is writable. `attempt` counts from 0 and chooses among several addresses
// of a host. Negative errno; -EADDRNOTAVAIL: the host's name is not known.
int address_connect(const struct address *, unsigned attempt);

#endif
