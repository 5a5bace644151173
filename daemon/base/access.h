// Access to the daemon: the groups of its files and sockets, the rights of a peer, and its
// listening sockets.
#ifndef FRAMED_DAEMON_BASE_ACCESS_H
#define FRAMED_DAEMON_BASE_ACCESS_H

#include <sys/types.h>

#include "config/config.h"

// --- ids of the groups that outputs name. A lookup may wait for a server: not on the loop thread.

// Returns 0, or -EINVAL: this machine has no such group.
int group_look_up(const char *name, gid_t *ret);
// Sets `group_id` of each output whose group exists.
void groups_look_up(struct config *);

// Stores the result of the lookup in *ret, (gid_t)-1 if the output names no group. Returns 0, or
// -EINVAL with a reason in `why`: the lookup failed. Does not block.
int group_of_output(const struct output_config *, gid_t *ret, char *why, size_t size);

// --- a peer of a unix socket: its credentials tell whether it may change what the daemon does

#define ADMIN_GROUP "framed-admin"

// Returns the id of ADMIN_GROUP; (gid_t)-1: this machine has no such group. May block.
gid_t admin_group(void);
// Returns true if root, the daemon's own user or a member of the group opened the connection `fd`,
// a unix socket.
bool peer_is_admin(int fd, gid_t admins);

// --- a listening socket of a sink or of the daemon itself. Loop thread only.

struct listener {
    int fd;           // non-blocking; -1 when closed
    const char *path; // of a unix socket or ring, owned by the address; NULL for tcp
    bool published;   // the socket is at its path, or it is tcp
    dev_t device;     // of the unix socket
    ino_t inode;
    bool logged; // the missing socket has been logged
};

struct listener_options {
    const struct sink_address *address; // unix, ring or tcp; outlives the listener
    int mode;                           // of a unix socket or ring
    const struct output_config *output; // its group applies to a unix socket or ring; NULL: none
    const struct listener *ours;        // our own listener that may be at the path; NULL: none
};

// Binds and listens. A unix socket has mode and group, and a temporary name beside its path until
// it is published. Returns 0 or a negative errno, with one sentence in `why`: -EADDRINUSE: another
// program listens there; -EEXIST: the file at the path is not a socket and stays.
int listener_open(struct listener *, const struct listener_options *, char *why, size_t size);
// Moves the unix socket to its path, replacing a stale one or ours. Returns 0 or a negative errno.
int listener_publish(struct listener *);
// Opens and publishes, with the error in `why`.
int listener_serve(struct listener *, const struct listener_options *, char *why, size_t size);
// Returns true if a published unix socket was removed from its path. Reads the file system.
bool listener_is_gone(const struct listener *);
// Opens *ret at the path of a socket that is gone; the caller then closes that one. Returns 0 or a
// negative errno, as listener_open. `what` gets one sentence for the log; "" after a repeated
// failure for `gone`, which is already logged.
int listener_restore(struct listener *ret, struct listener *gone, const struct listener_options *,
                     char *what, size_t size);
int listener_port(const struct listener *); // of a tcp socket; otherwise 0
// Closes the socket, and removes a unix socket unless it has been replaced. Accepts a closed one.
void listener_close(struct listener *);

#endif
