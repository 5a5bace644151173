#include "daemon/base/peer_rights.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/groups.h"

gid_t admin_group(void)
{
    gid_t group;
    return group_look_up(ADMIN_GROUP, &group) == 0 ? group : (gid_t)-1;
}

static bool peer_has_group(int fd, gid_t wanted)
{
    socklen_t size = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) == 0 || errno != ERANGE)
        return false; // a peer without groups
    gid_t *groups = malloc(size);
    bool found = false;
    if (groups && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0)
        for (size_t i = 0; i < size / sizeof *groups && !found; i++)
            found = groups[i] == wanted;
    free(groups);
    return found;
}

bool peer_is_admin(int fd, gid_t admins)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return false;
    return peer.uid == 0 || peer.uid == geteuid() ||
           (admins != (gid_t)-1 && (peer.gid == admins || peer_has_group(fd, admins)));
}
