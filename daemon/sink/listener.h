// The listening end of a socket sink. Loop thread only.
#ifndef FRAMED_DAEMON_SINK_LISTENER_H
#define FRAMED_DAEMON_SINK_LISTENER_H

#include <sys/types.h>

#include "config/config.h"

struct listener {
    int fd;           // non-blocking; -1 when closed
    const char *path; // of a unix socket or ring, the configuration's; NULL for tcp
    dev_t device;     // of the unix socket that was made at the path
    ino_t inode;
};

// Binds and listens where the output's sink says. A unix socket appears at its path with mode and
// group set, in place of a stale one. Returns 0 or negative errno, with one sentence in `why`:
// -EADDRINUSE: someone listens there; -EEXIST: what is at the path is no socket and stays.
int listener_open(struct listener *, const struct output_config *, char *why, size_t size);
int listener_port(const struct listener *); // of a tcp socket; else 0
// Also removes the unix socket, unless someone has put another in its place. Accepts a closed one.
void listener_close(struct listener *);

#endif
