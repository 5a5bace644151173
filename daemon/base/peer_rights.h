// Tells whether a unix socket's peer may change what the daemon does, by its credentials.
#ifndef FRAMED_DAEMON_BASE_PEER_RIGHTS_H
#define FRAMED_DAEMON_BASE_PEER_RIGHTS_H

#include <stdbool.h>
#include <sys/types.h>

#define ADMIN_GROUP "framed-admin"

// Returns the id of ADMIN_GROUP; (gid_t)-1: this machine has no such group. May block.
gid_t admin_group(void);
// Returns true if root, the daemon's own user or a member of the group opened the connection `fd`,
// a unix socket.
bool peer_is_admin(int fd, gid_t admins);

#endif
