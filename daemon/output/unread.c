#include "daemon/output/unread.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { STATE_LISTEN = 10 }; // idiag_state, which the kernel names in no public header

int unread_open_netlink(void)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    return fd < 0 ? -errno : fd;
}

int64_t unread_unix(int fd)
{
    int bytes;
    if (ioctl(fd, SIOCOUTQ, &bytes) < 0)
        return -errno;
    // The kernel wakes who waits for room with one byte of the last piece still on its books.
    return bytes > 1 ? bytes : 0;
}

// --- a peer on this box

static void put_address(uint32_t words[4], uint16_t *port, const struct sockaddr_storage *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    if (address->ss_family == AF_INET6) {
        memcpy(words, &v6->sin6_addr, sizeof v6->sin6_addr);
        *port = v6->sin6_port;
    } else {
        memcpy(words, &v4->sin_addr, sizeof v4->sin_addr);
        *port = v4->sin_port;
    }
}

// Asks for the socket at the other end of `fd`.
static int ask_diagnosis(int netlink, int fd)
{
    struct sockaddr_storage here, peer;
    socklen_t here_size = sizeof here, peer_size = sizeof peer;
    if (getsockname(fd, (struct sockaddr *)&here, &here_size) < 0 ||
        getpeername(fd, (struct sockaddr *)&peer, &peer_size) < 0)
        return -errno;
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 body;
    } request = {
        .header = {.nlmsg_len = sizeof request,
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = (uint8_t)peer.ss_family,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = UINT32_MAX,
                 .id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}},
    };
    struct inet_diag_sockid *id = &request.body.id;
    put_address(id->idiag_src, &id->idiag_sport, &peer);
    put_address(id->idiag_dst, &id->idiag_dport, &here);
    if (peer.ss_family == AF_INET6)
        id->idiag_if = ((const struct sockaddr_in6 *)&peer)->sin6_scope_id;
    return send(netlink, &request, sizeof request, 0) < 0 ? -errno : 0;
}

// Bytes in the receive queue of the peer's socket; -ENOENT: it is not on this box.
static int64_t peer_queue(int netlink, int fd)
{
    union {
        struct nlmsghdr header;
        char bytes[4096];
    } reply;
    int rc = ask_diagnosis(netlink, fd);
    if (rc < 0)
        return rc;
    ssize_t n = recv(netlink, &reply, sizeof reply, 0); // there already: send() put it there
    if (n < 0)
        return -errno;
    const struct inet_diag_msg *found = NLMSG_DATA(&reply.header);
    // Where no connection fits, the kernel answers with a listener at that port.
    if ((size_t)n < NLMSG_LENGTH(sizeof *found) || reply.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        found->idiag_state == STATE_LISTEN)
        return -ENOENT;
    return found->idiag_rqueue;
}

// --- a peer on another box

static int64_t missing_window(struct unread *unread, int fd)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
        return -errno;
    if (size < offsetof(struct tcp_info, tcpi_snd_wnd) + sizeof info.tcpi_snd_wnd)
        return 0; // Linux before 5.4
    uint32_t now = info.tcpi_snd_wnd;
    if (now > unread->window)
        unread->window = now;
    return now < unread->window / 2 ? unread->window - now : 0;
}

int64_t unread_tcp(struct unread *unread, int netlink, int fd)
{
    int waiting;
    int64_t queued = -ENOENT;
    // First what was not acknowledged: it may be in the peer's queue by the time of the question.
    if (ioctl(fd, SIOCOUTQ, &waiting) < 0)
        return -errno;
    if (!unread->remote && netlink >= 0)
        queued = peer_queue(netlink, fd);
    if (queued >= 0)
        return waiting + queued;
    unread->remote |= queued == -ENOENT;
    if (ioctl(fd, SIOCOUTQNSD, &waiting) < 0)
        return -errno;
    queued = missing_window(unread, fd);
    return queued < 0 ? queued : waiting + queued;
}
