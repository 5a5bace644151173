#include "client/address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int parse_path(struct address *address, const char *path)
{
    if (path[0] == '\0')
        return -EINVAL;
    if (strlen(path) >= sizeof address->path.sun_path)
        return -ENAMETOOLONG;
    address->path.sun_family = AF_UNIX;
    strcpy(address->path.sun_path, path);
    return 0;
}

// HOST:PORT, with or without brackets around HOST.
static int parse_host(struct address *address, const char *text)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || strlen(colon + 1) >= sizeof address->port)
        return -EINVAL;
    size_t length = (size_t)(colon - text);
    if (text[0] == '[' && colon[-1] == ']') {
        text++;
        length -= 2;
    }
    if (length == 0 || length >= sizeof address->host)
        return -EINVAL;
    memcpy(address->host, text, length);
    strcpy(address->port, colon + 1);
    const size_t digits = strspn(address->port, "0123456789");
    return digits > 0 && address->port[digits] == '\0' ? 0 : -EINVAL;
}

int address_parse(struct address *address, const char *text)
{
    *address = (struct address){0};
    if (strncmp(text, "tcp:", 4) == 0) {
        address->kind = ADDRESS_TCP;
        return parse_host(address, text + 4);
    }
    address->kind = strncmp(text, "ring:", 5) == 0 ? ADDRESS_RING : ADDRESS_UNIX;
    return address->kind == ADDRESS_RING || strncmp(text, "unix:", 5) == 0
               ? parse_path(address, text + 5)
               : -EINVAL;
}

// Gives up a silent host: one that answers no connection for about 15 s, or one that vanishes with
// a connection open.
static void limit_silence(int fd)
{
    const int on = 1, idle_s = 10, between_s = 5, probes = 3, attempts = 3;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &attempts, sizeof attempts);
}

static int connect_socket(int family, int type, const struct sockaddr *to, socklen_t size)
{
    const int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (family != AF_UNIX)
        limit_silence(fd);
    if (connect(fd, to, size) == 0 || errno == EINPROGRESS)
        return fd;
    const int rc = -errno;
    close(fd);
    return rc;
}

static int connect_tcp(const struct address *address, unsigned attempt)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    if (getaddrinfo(address->host, address->port, &wanted, &found) != 0)
        return -EADDRNOTAVAIL;
    unsigned n = 0;
    for (const struct addrinfo *at = found; at; at = at->ai_next)
        n++;
    const struct addrinfo *chosen = found;
    for (unsigned i = attempt % n; i > 0; i--)
        chosen = chosen->ai_next;
    const int rc =
        connect_socket(chosen->ai_family, SOCK_STREAM, chosen->ai_addr, chosen->ai_addrlen);
    freeaddrinfo(found);
    return rc;
}

int address_connect(const struct address *address, unsigned attempt)
{
    if (address->kind == ADDRESS_TCP)
        return connect_tcp(address, attempt);
    return connect_socket(AF_UNIX, address->kind == ADDRESS_RING ? SOCK_SEQPACKET : SOCK_STREAM,
                          (const struct sockaddr *)&address->path, sizeof address->path);
}
