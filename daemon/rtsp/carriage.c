#include "daemon/rtsp/carriage.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/rtsp/rtcp.h"
#include "daemon/rtsp/sdp.h"

// --- sockets

enum {
    RECEIVE_BUFFER = 2 << 20, // more than a keyframe of 2160p
    PAIR_TRIES = 64,          // to bind two neighbouring ports
    FOREIGN_MAX = 64,         // foreign datagrams skipped in one read
};

enum { RTP, RTCP };

static socklen_t address_size(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

// The port is at the same place in addresses of both families.
static void set_port(struct sockaddr_storage *a, int port)
{
    ((struct sockaddr_in *)a)->sin_port = htons((uint16_t)port);
}

static int port_of(const struct sockaddr_storage *a)
{
    return ntohs(((const struct sockaddr_in *)a)->sin_port);
}

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET6)
        return !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                       &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr));
    return a->ss_family == AF_INET && ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
                                          ((const struct sockaddr_in *)b)->sin_addr.s_addr;
}

static bool parse_address(struct sockaddr_storage *ret, const char *text)
{
    *ret = (struct sockaddr_storage){0};
    if (inet_pton(AF_INET, text, &((struct sockaddr_in *)ret)->sin_addr) == 1)
        ret->ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)ret)->sin6_addr) == 1)
        ret->ss_family = AF_INET6;
    else
        *ret = (struct sockaddr_storage){0};
    return ret->ss_family != AF_UNSPEC;
}

static bool is_multicast(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6
               ? IN6_IS_ADDR_MULTICAST(&((const struct sockaddr_in6 *)a)->sin6_addr)
               : a->ss_family == AF_INET &&
                     IN_MULTICAST(ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr));
}

static void close_socket(struct rtsp_carriage *c, int which)
{
    if (c->fd[which] >= 0)
        close(c->fd[which]);
    c->fd[which] = -1;
}

static int bind_socket(struct rtsp_carriage *c, int which, struct sockaddr_storage at, int port)
{
    const int one = 1, size = RECEIVE_BUFFER;
    set_port(&at, port);
    int fd = c->fd[which] = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size); // only as root
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);      // up to rmem_max
    setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &one, sizeof one);
    if (is_multicast(&at)) // other programs here may receive the group too
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    return bind(fd, (struct sockaddr *)&at, address_size(&at)) < 0 ? -errno : 0;
}

// Binds an even port and the next one. The kernel chooses one of them; the other may be taken.
// Returns the even one, or a negative errno.
static int bind_pair(struct rtsp_carriage *c)
{
    int rc = -EADDRINUSE;
    for (int i = 0; i < PAIR_TRIES && rc == -EADDRINUSE; i++) {
        struct sockaddr_storage chosen = {0};
        close_socket(c, RTP);
        close_socket(c, RTCP);
        if ((rc = bind_socket(c, RTP, c->local, 0)) < 0)
            break;
        getsockname(c->fd[RTP], (struct sockaddr *)&chosen, &(socklen_t){sizeof chosen});
        const int port = port_of(&chosen);
        if (port % 2 == 0) {
            rc = bind_socket(c, RTCP, c->local, port + 1);
        } else {
            c->fd[RTCP] = c->fd[RTP];
            rc = bind_socket(c, RTP, c->local, port - 1);
        }
        if (rc == 0)
            return port / 2 * 2;
    }
    return rc;
}

void rtsp_carriage_close(struct rtsp_carriage *c)
{
    close_socket(c, RTP);
    close_socket(c, RTCP);
}

// --- sockets: multicast

// Returns the index of the interface with this address; 0: the system chooses.
static unsigned interface_of(const struct sockaddr_storage *local)
{
    struct ifaddrs *list = NULL;
    unsigned index = 0;
    if (getifaddrs(&list) < 0)
        return 0;
    for (const struct ifaddrs *i = list; i && !index; i = i->ifa_next) {
        struct sockaddr_storage address = {0};
        if (!i->ifa_addr ||
            (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
            continue;
        address.ss_family = i->ifa_addr->sa_family;
        memcpy(&address, i->ifa_addr, address_size(&address));
        if (same_host(&address, local))
            index = if_nametoindex(i->ifa_name);
    }
    freeifaddrs(list);
    return index;
}

// Joins or leaves the group: `option` is one of the kernel's four. Those for any sender read the
// request without its source.
static int change_group(const struct rtsp_carriage *c, int fd, int option)
{
    const int level = c->group.ss_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
    const struct group_source_req request = {
        .gsr_interface = c->interface,
        .gsr_group = c->group,
        .gsr_source = c->source.ss_family ? c->source : c->peer,
    };
    return setsockopt(fd, level, option, &request, sizeof request) < 0 ? -errno : 0;
}

static int join_group(struct rtsp_carriage *c, int fd)
{
    if (change_group(c, fd, MCAST_JOIN_SOURCE_GROUP) == 0)
        return 0;
    c->from_anybody = true;
    return change_group(c, fd, MCAST_JOIN_GROUP);
}

// Sends reports to the group through the interface that it was joined on.
static void set_interface(const struct rtsp_carriage *c, int fd, int ttl)
{
    const struct ip_mreqn by = {.imr_ifindex = (int)c->interface};
    if (c->group.ss_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &c->interface, sizeof c->interface);
        setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &ttl, sizeof ttl);
    } else {
        setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof by);
        setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &ttl, sizeof ttl);
    }
}

// Joins a group on the RTSP connection's interface. Returns 0; -EINVAL: no numeric multicast
// address, or no port; another negative errno.
static int join_multicast(struct rtsp_carriage *c, const char *group, const int ports[2], int ttl)
{
    int rc = 0;
    if (!parse_address(&c->group, group) || !is_multicast(&c->group) || ports[0] <= 0 ||
        c->group.ss_family != c->local.ss_family)
        return -EINVAL;
    c->interface = interface_of(&c->local);
    for (int i = 0; i < 2 && rc == 0; i++) {
        if (ports[i] <= 0)
            continue;
        rc = bind_socket(c, i, c->group, ports[i]); // excludes packets of other groups
        if (rc == 0)
            rc = join_group(c, c->fd[i]);
        if (rc == 0)
            set_interface(c, c->fd[i], ttl > 0 ? ttl : 1);
    }
    return rc;
}

void rtsp_carriage_widen(struct rtsp_carriage *c)
{
    for (int i = 0; i < 2; i++) {
        change_group(c, c->fd[i], MCAST_LEAVE_SOURCE_GROUP);
        change_group(c, c->fd[i], MCAST_JOIN_GROUP);
    }
    c->from_anybody = true;
}

// --- sockets: datagrams

static void note_overruns(struct rtsp_carriage *c, int which, struct msghdr *message)
{
    for (struct cmsghdr *m = CMSG_FIRSTHDR(message); m; m = CMSG_NXTHDR(message, m))
        if (m->cmsg_level == SOL_SOCKET && m->cmsg_type == SO_RXQ_OVFL)
            memcpy(&c->overruns[which], CMSG_DATA(m), sizeof c->overruns[which]);
}

static bool is_from_camera(const struct rtsp_carriage *c, int which)
{
    const bool host = c->from_anybody || same_host(&c->sender, &c->peer) ||
                      (c->source.ss_family && same_host(&c->sender, &c->source));
    return host &&
           (which == RTCP || !c->confirmed_port || c->confirmed_port == port_of(&c->sender));
}

ssize_t rtsp_carriage_read(struct rtsp_carriage *c, const uint8_t **data)
{
    for (int which = RTP; which <= RTCP; which++) {
        for (int i = 0; i < FOREIGN_MAX && c->fd[which] >= 0; i++) {
            _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(uint32_t))];
            struct iovec to = {c->datagram, sizeof c->datagram};
            struct msghdr message = {.msg_name = &c->sender,
                                     .msg_namelen = sizeof c->sender,
                                     .msg_iov = &to,
                                     .msg_iovlen = 1,
                                     .msg_control = control,
                                     .msg_controllen = sizeof control};
            const ssize_t n = recvmsg(c->fd[which], &message, MSG_DONTWAIT);
            if (n < 0)
                break;
            note_overruns(c, which, &message);
            if (!is_from_camera(c, which))
                continue;
            c->sender_socket = which;
            *data = c->datagram;
            return n;
        }
    }
    return -EAGAIN;
}

void rtsp_carriage_confirm(struct rtsp_carriage *c)
{
    if (!c->confirmed_port && c->sender_socket == RTP)
        c->confirmed_port = port_of(&c->sender);
}

// Sends to the camera's RTP or RTCP port; a datagram that cannot be sent is lost.
static void send_datagram(struct rtsp_carriage *c, int which, const uint8_t *data, size_t bytes)
{
    struct sockaddr_storage to = c->group.ss_family ? c->group : c->peer;
    if (c->fd[which] < 0 || !c->peer_port[which])
        return;
    set_port(&to, c->peer_port[which]);
    sendto(c->fd[which], data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to,
           address_size(&to));
}

// --- the Transport header

enum { CHANNEL_MAX = 255, PORT_MAX = 65535, TTL_MAX = 255 };

static int read_bounded(const char *text, int low, int high, int otherwise)
{
    char *end;
    const long n = strtol(text, &end, 10);
    return end != text && n >= low && n <= high ? (int)n : otherwise;
}

// Reads "10-11", or the first number alone: then the second one is the next.
static void read_pair(const char *text, int low, int high, int ret[2])
{
    const char *second = strchr(text, '-');
    ret[0] = read_bounded(text, low, high, ret[0]);
    if (second)
        ret[1] = read_bounded(second + 1, low, high, ret[1]);
    else if (ret[0] >= low && ret[0] < high)
        ret[1] = ret[0] + 1;
}

// Reads hexadecimal digits, or decimal ones if there are nine or more, as some cameras write it.
static uint32_t read_ssrc(const char *text)
{
    const size_t digits = strspn(text, "0123456789abcdefABCDEF");
    return digits > 10 ? 0 : (uint32_t)strtoul(text, NULL, digits > 8 ? 10 : 16);
}

// Reads an address, without the brackets that some cameras put around an IPv6 address.
static void read_address(const char *text, char *ret, size_t size)
{
    const char *begin = text + (*text == '[');
    snprintf(ret, size, "%.*s", (int)strcspn(begin, "]"), begin);
}

static void read_parameter(struct rtsp_transport *t, const char *name, const char *value)
{
    if (!strcasecmp(name, "interleaved"))
        read_pair(value, 0, CHANNEL_MAX, t->channels);
    else if (!strcasecmp(name, "server_port"))
        read_pair(value, 2, PORT_MAX, t->server_ports); // 0-1 means none
    else if (!strcasecmp(name, "port"))
        read_pair(value, 1, PORT_MAX, t->ports);
    else if (!strcasecmp(name, "ssrc"))
        t->ssrc = read_ssrc(value);
    else if (!strcasecmp(name, "ttl"))
        t->ttl = read_bounded(value, 1, TTL_MAX, 0);
    else if (!strcasecmp(name, "source"))
        read_address(value, t->source, sizeof t->source);
    else if (!strcasecmp(name, "destination"))
        read_address(value, t->destination, sizeof t->destination);
    else if (!strcasecmp(name, "multicast"))
        t->multicast = true;
    else if (!strcasecmp(name, "RTP/AVP/TCP"))
        t->tcp = true;
}

void rtsp_transport_parse(struct rtsp_transport *ret, const char *value)
{
    char copy[512], *rest, *part, *equals;
    *ret = (struct rtsp_transport){.channels = {-1, -1}};
    snprintf(copy, sizeof copy, "%s", value ? value : "");
    copy[strcspn(copy, ",")] = 0; // only the first of several
    for (part = strtok_r(copy, ";", &rest); part; part = strtok_r(NULL, ";", &rest)) {
        part += strspn(part, " \t");
        equals = part + strcspn(part, "=");
        char *behind = *equals ? equals + 1 : equals;
        behind += strspn(behind, " \t\"");
        behind[strcspn(behind, " \t\"")] = 0;
        *equals = 0;
        part[strcspn(part, " \t")] = 0;
        read_parameter(ret, part, behind);
    }
    ret->tcp = ret->tcp || ret->channels[0] >= 0;
}

// --- the transport

int rtsp_carriage_ask(struct rtsp_carriage *c, enum transport transport,
                      const struct rtsp_connection *connection, char *header, size_t size)
{
    const int fd = connection->fd;
    int port = 0;
    rtsp_carriage_close(c);
    memset(c, 0, offsetof(struct rtsp_carriage, datagram));
    c->transport = transport;
    c->channels[1] = 1;
    c->fd[RTP] = c->fd[RTCP] = -1;
    getsockname(fd, (struct sockaddr *)&c->local, &(socklen_t){sizeof c->local});
    getpeername(fd, (struct sockaddr *)&c->peer, &(socklen_t){sizeof c->peer});
    if (transport == TRANSPORT_TCP)
        snprintf(header, size, "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n");
    else if (transport == TRANSPORT_MULTICAST)
        snprintf(header, size, "Transport: RTP/AVP;multicast\r\n");
    else if ((port = bind_pair(c)) >= 0)
        snprintf(header, size, "Transport: RTP/AVP;unicast;client_port=%d-%d\r\n", port, port + 1);
    return port < 0 ? port : 0;
}

int rtsp_carriage_answer(struct rtsp_carriage *c, const char *header, const struct sdp_media *media)
{
    struct rtsp_transport answer;
    rtsp_transport_parse(&answer, header);
    c->ssrc = answer.ssrc;
    if (c->transport == TRANSPORT_TCP) {
        if (answer.channels[0] >= 0)
            memcpy(c->channels, answer.channels, sizeof c->channels);
        return 0;
    }
    if (answer.tcp)
        return -EXDEV;
    const bool multicast = answer.multicast || c->transport == TRANSPORT_MULTICAST;
    const bool named = answer.ports[0] || !media->port;
    const int announced[2] = {media->port, media->port + 1};
    const int *ports = !multicast ? answer.server_ports : named ? answer.ports : announced;
    memcpy(c->peer_port, ports, sizeof c->peer_port);
    parse_address(&c->source, answer.source);
    if (!multicast)
        return 0;
    rtsp_carriage_close(c); // perhaps unicast was requested
    c->transport = TRANSPORT_MULTICAST;
    return join_multicast(c, *answer.destination ? answer.destination : media->address, ports,
                          answer.ttl ? answer.ttl : media->ttl);
}

// Sends an empty RTP packet and an empty report, which cameras ignore.
void rtsp_carriage_punch(struct rtsp_carriage *c, int payload_type, uint32_t ssrc)
{
    const uint8_t id[4] = {(uint8_t)(ssrc >> 24), (uint8_t)(ssrc >> 16), (uint8_t)(ssrc >> 8),
                           (uint8_t)ssrc};
    uint8_t rtp[12] = {0x80, (uint8_t)payload_type}, report[8] = {0x80, 201, 0, 1};
    if (c->transport != TRANSPORT_UDP)
        return;
    memcpy(rtp + 8, id, sizeof id);
    memcpy(report + 4, id, sizeof id);
    send_datagram(c, RTP, rtp, sizeof rtp);
    send_datagram(c, RTCP, report, sizeof report);
}

int rtsp_carriage_send(struct rtsp_carriage *c, struct rtsp_connection *connection,
                       const uint8_t *data, size_t bytes)
{
    uint8_t frame[4 + RTCP_REPORT_MAX] = {'$', (uint8_t)c->channels[1], (uint8_t)(bytes >> 8),
                                          (uint8_t)bytes};
    if (c->transport != TRANSPORT_TCP) {
        send_datagram(c, RTCP, data, bytes);
        return 0;
    }
    if (connection->queued)
        return 0;
    memcpy(frame + 4, data, bytes);
    return rtsp_connection_write(connection, frame, 4 + bytes);
}
