#include "daemon/base/access.h"

#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/address.h"

// --- groups

int group_look_up(const char *name, gid_t *ret)
{
    struct group entry, *found = NULL;
    char text[16384]; // holds the members; a group with more counts as unknown
    getgrnam_r(name, &entry, text, sizeof text, &found);
    if (!found)
        return -EINVAL;
    *ret = found->gr_gid;
    return 0;
}

static void look_up_output(struct output_config *output)
{
    if (output->group)
        output->has_group_id = group_look_up(output->group, &output->group_id) == 0;
    struct detections_config *lines = &output->detections;
    if (lines->group)
        lines->has_group_id = group_look_up(lines->group, &lines->group_id) == 0;
}

void groups_look_up(struct config *config)
{
    for (int i = 0; i < config->n_cameras; i++)
        for (int o = 0; o < config->cameras[i].n_outputs; o++)
            look_up_output(&config->cameras[i].outputs[o]);
    for (int i = 0; i < config->n_batches; i++)
        look_up_output(&config->batches[i]);
}

int group_of_output(const struct output_config *output, gid_t *ret, char *why, size_t size)
{
    *ret = output->has_group_id ? output->group_id : (gid_t)-1;
    if (!output->group || output->has_group_id)
        return 0;
    snprintf(why, size, "there is no group \"%s\" on this machine", output->group);
    return -EINVAL;
}

// --- peers

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

// --- listening sockets

enum { BACKLOG = 64 };

static int open_socket(int family, int type)
{
    int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

// --- unix sockets

static struct sockaddr_un unix_address(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path));
    return address;
}

// Returns 0 if a process has the socket at `path`, of any type; -ECONNREFUSED: none; or another
// negative errno. Connects with a datagram socket, which a listener does not notice.
static int try_connect(const char *path)
{
    struct sockaddr_un address = unix_address(path);
    int fd = open_socket(AF_UNIX, SOCK_DGRAM);
    if (fd < 0)
        return fd;
    int rc = connect(fd, (struct sockaddr *)&address, sizeof address) < 0 ? -errno : 0;
    close(fd);
    return rc == -EPROTOTYPE ? 0 : rc; // a socket of another type
}

static bool is_at(const struct listener *listener, const struct stat *st)
{
    return listener && listener->path && st->st_dev == listener->device &&
           st->st_ino == listener->inode;
}

// Returns 0 if the path is free or holds a stale socket or ours.
static int check_path(const char *path, const struct listener *ours, char *why, size_t size)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return 0; // if lstat fails, bind reports a better reason
    if (!S_ISSOCK(st.st_mode)) {
        snprintf(why, size, "%s exists and is not a socket", path);
        return -EEXIST;
    }
    if (is_at(ours, &st))
        return 0;
    int rc = try_connect(path);
    if (rc == 0) {
        snprintf(why, size, "another program listens on %s", path);
        return -EADDRINUSE;
    }
    if (rc == -ECONNREFUSED || rc == -ENOENT)
        return 0;
    snprintf(why, size, "cannot tell whether %s is in use: %s", path, strerror(-rc));
    return rc;
}

struct temporary {
    char name[sizeof((struct sockaddr_un *)0)->sun_path];
};

static struct temporary temporary_of(const char *path)
{
    struct temporary temporary;
    snprintf(temporary.name, sizeof temporary.name, "%s.%d", path, (int)getpid());
    return temporary;
}

// Sets mode and group of the socket at `temporary` before anyone can connect.
static int prepare_unix(struct listener *listener, const struct listener_options *options,
                        gid_t group, const char *temporary)
{
    struct stat st;
    if (lstat(temporary, &st) < 0 || chmod(temporary, (mode_t)options->mode) < 0 ||
        (group != (gid_t)-1 && group != st.st_gid && chown(temporary, (uid_t)-1, group) < 0) ||
        listen(listener->fd, BACKLOG) < 0)
        return -errno;
    listener->path = options->address->path;
    listener->device = st.st_dev;
    listener->inode = st.st_ino;
    return 0;
}

_Static_assert(sizeof((struct sockaddr_un *)0)->sun_path >=
                   SOCKET_PATH_MAX + sizeof ".4194304", // the largest process id
               "the longest path has room for a temporary name");

static int bind_unix(struct listener *listener, const struct listener_options *options, gid_t group)
{
    const struct temporary temporary = temporary_of(options->address->path);
    struct stat st;
    if (lstat(temporary.name, &st) == 0 && S_ISSOCK(st.st_mode))
        unlink(temporary.name); // left by a run with this process id that was killed here
    struct sockaddr_un address = unix_address(temporary.name);
    if (bind(listener->fd, (struct sockaddr *)&address, sizeof address) < 0)
        return -errno;
    int rc = prepare_unix(listener, options, group, temporary.name);
    if (rc < 0)
        unlink(temporary.name);
    return rc;
}

int listener_publish(struct listener *listener)
{
    if (listener->published)
        return 0;
    if (rename(temporary_of(listener->path).name, listener->path) < 0)
        return -errno;
    listener->published = true;
    return 0;
}

static int open_unix(struct listener *listener, const struct listener_options *options, char *why,
                     size_t size)
{
    const char *path = options->address->path;
    gid_t group = (gid_t)-1;
    int rc = options->output ? group_of_output(options->output, &group, why, size) : 0;
    if (rc == 0)
        rc = check_path(path, options->ours, why, size);
    if (rc < 0)
        return rc;
    // A ring exchanges messages.
    rc = listener->fd =
        open_socket(AF_UNIX, options->address->kind == SINK_RING ? SOCK_SEQPACKET : SOCK_STREAM);
    if (rc >= 0)
        rc = bind_unix(listener, options, group);
    if (rc < 0)
        snprintf(why, size, "cannot listen on %s: %s", path, strerror(-rc));
    return rc;
}

// --- tcp

static int bind_tcp(struct listener *listener, const struct addrinfo *address)
{
    int on = 1;
    listener->fd = open_socket(address->ai_family, SOCK_STREAM);
    if (listener->fd < 0)
        return listener->fd;
    // A restart must not wait for the connections of the previous run.
    setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener->fd, address->ai_addr, address->ai_addrlen) == 0 &&
        listen(listener->fd, BACKLOG) == 0)
        return 0;
    int rc = -errno;
    listener_close(listener);
    return rc;
}

static int open_tcp(struct listener *listener, const struct sink_address *sink, char *why,
                    size_t size)
{
    const char *host = address_host(sink);
    // Numeric only: resolving names may take a while.
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    char port[16];
    snprintf(port, sizeof port, "%d", sink->port);
    int failure = getaddrinfo(host, port, &hints, &list);
    if (failure) {
        snprintf(why, size, "cannot find the address %s: %s", host, gai_strerror(failure));
        return failure == EAI_SYSTEM ? -errno : -EADDRNOTAVAIL;
    }
    int rc = -EADDRNOTAVAIL;
    for (const struct addrinfo *address = list; address && rc < 0; address = address->ai_next)
        rc = bind_tcp(listener, address);
    freeaddrinfo(list);
    listener->published = true;
    if (rc < 0)
        snprintf(why, size, "cannot listen on %s port %d: %s", host, sink->port, strerror(-rc));
    return rc;
}

int listener_open(struct listener *listener, const struct listener_options *options, char *why,
                  size_t size)
{
    *listener = (struct listener){.fd = -1};
    int rc = options->address->kind == SINK_TCP ? open_tcp(listener, options->address, why, size)
                                                : open_unix(listener, options, why, size);
    if (rc < 0)
        listener_close(listener);
    return rc < 0 ? rc : 0;
}

int listener_serve(struct listener *listener, const struct listener_options *options, char *why,
                   size_t size)
{
    int rc = listener_open(listener, options, why, size);
    if (rc < 0)
        return rc;
    rc = listener_publish(listener);
    if (rc < 0) {
        snprintf(why, size, "cannot listen on %s: %s", listener->path, strerror(-rc));
        listener_close(listener);
    }
    return rc;
}

bool listener_is_gone(const struct listener *listener)
{
    struct stat st;
    if (!listener->path || !listener->published)
        return false;
    if (lstat(listener->path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR;
    return !is_at(listener, &st);
}

int listener_restore(struct listener *ret, struct listener *gone,
                     const struct listener_options *options, char *what, size_t size)
{
    char why[256];
    int rc = listener_serve(ret, options, why, sizeof why);
    what[0] = 0;
    if (rc == 0 && gone->logged)
        snprintf(what, size, "listens on %s again", gone->path);
    else if (rc == 0)
        snprintf(what, size, "the socket %s was removed: listens there again", gone->path);
    else if (!gone->logged)
        snprintf(what, size, "the socket %s was removed: %s (tried again every second)", gone->path,
                 why);
    gone->logged = true;
    return rc;
}

int listener_port(const struct listener *listener)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (getsockname(listener->fd, (struct sockaddr *)&address, &length) < 0)
        return 0;
    if (address.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&address)->sin_port);
    if (address.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return 0;
}

void listener_close(struct listener *listener)
{
    struct stat st;
    if (listener->path && !listener->published)
        unlink(temporary_of(listener->path).name);
    else if (listener->path && lstat(listener->path, &st) == 0 && is_at(listener, &st))
        unlink(listener->path);
    if (listener->fd >= 0)
        close(listener->fd);
    *listener = (struct listener){.fd = -1};
}
