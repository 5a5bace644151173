// A listening socket: of a sink, or of the daemon itself. Loop thread only.
#ifndef FRAMED_DAEMON_BASE_LISTENER_H
#define FRAMED_DAEMON_BASE_LISTENER_H

#include <sys/types.h>

#include "config/config.h"

struct listener {
    int fd;           // non-blocking; -1 when closed
    const char *path; // of a unix socket or ring, the address's; NULL for tcp
    bool published;   // the socket is at its path, or it is of tcp
    dev_t device;     // of the unix socket
    ino_t inode;
    bool logged; // the log knows that the socket is not at its path
};

struct listener_options {
    const struct sink_address *address; // unix, ring or tcp; outlives the listener
    int mode;                           // of a unix socket or ring
    const struct output_config *output; // whose group a unix socket or ring gets; NULL: nobody's
    const struct listener *ours;        // who may be at the path already; NULL: nobody
};

// Binds and listens; a unix socket has mode and group, and another name beside its path until it is
// published. Returns 0 or negative errno, with one sentence in `why`: -EADDRINUSE: someone who is
// not ours listens there; -EEXIST: what is at the path is no socket and stays.
int listener_open(struct listener *, const struct listener_options *, char *why, size_t size);
// Puts the unix socket at its path, in place of a stale one or of ours. 0 or negative errno.
int listener_publish(struct listener *);
// Both in one, with their error in `why`.
int listener_serve(struct listener *, const struct listener_options *, char *why, size_t size);
// Whether somebody has removed a published unix socket from its path. Asks the file system.
bool listener_is_gone(const struct listener *);
// Opens *ret at the path of a socket that is gone, which the caller closes then. Returns 0 or
// negative errno, as listener_open. `what` gets one sentence for the log, or "" when an earlier
// call for `gone` has failed too: then the log knows.
int listener_restore(struct listener *ret, struct listener *gone, const struct listener_options *,
                     char *what, size_t size);
int listener_port(const struct listener *); // of a tcp socket; else 0
// Also removes the unix socket, unless someone has put another in its place. Accepts a closed one.
void listener_close(struct listener *);

#endif
