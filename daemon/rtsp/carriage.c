#include "daemon/rtsp/carriage.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/rtsp/rtcp.h"
#include "daemon/rtsp/sdp.h"

// --- sockets

enum {
    DATAGRAM_MAX = 64 << 10,
    RECEIVE_BUFFER = 2 << 20, // more than a keyframe of 2160p
    PAIR_TRIES = 64,          // to bind two neighbouring ports
    FOREIGN_MAX = 64,         // foreign datagrams skipped in one read
};

enum { RTP, RTCP };

struct rtp_sockets {
    int fd[2];
    struct sockaddr_storage local, peer, source, group; // source: AF_UNSPEC: not named
    struct sockaddr_storage sender;                     // of the datagram read last
    int peer_port[2];                                   // 0: unknown
    int sender_socket;                                  // its socket: RTP, RTCP
    int settled_port;                                   // of RTP; 0: any
    bool multicast, from_anybody;
    uint32_t overruns[2];
    uint8_t datagram[DATAGRAM_MAX];
};

static socklen_t address_size(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static void set_port(struct sockaddr_storage *a, int port)
{
    if (a->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)a)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)a)->sin_port = htons((uint16_t)port);
}

static int port_of(const struct sockaddr_storage *a)
{
    return ntohs(a->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
                                          : ((const struct sockaddr_in *)a)->sin_port);
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

static int bind_socket(struct rtp_sockets *s, int which, struct sockaddr_storage *at, int port)
{
    const int one = 1, size = RECEIVE_BUFFER;
    set_port(at, port);
    int fd = socket(at->ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size); // only as root
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);      // up to rmem_max
    setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &one, sizeof one);
    if (s->multicast) // other programs here may receive the group too
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)at, address_size(at)) < 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    s->fd[which] = fd;
    return 0;
}

static void close_pair(struct rtp_sockets *s)
{
    for (int i = 0; i < 2; i++) {
        if (s->fd[i] >= 0)
            close(s->fd[i]);
        s->fd[i] = -1;
    }
}

// Binds an even port and the next one. The kernel chooses one of them; the other may be taken.
static int bind_pair(struct rtp_sockets *s)
{
    int rc = -EADDRINUSE;
    for (int i = 0; i < PAIR_TRIES && rc == -EADDRINUSE; i++) {
        struct sockaddr_storage at = s->local, chosen = {0};
        if ((rc = bind_socket(s, RTP, &at, 0)) < 0)
            break;
        getsockname(s->fd[RTP], (struct sockaddr *)&chosen, &(socklen_t){sizeof chosen});
        const int port = port_of(&chosen);
        if (port % 2 == 0) {
            rc = bind_socket(s, RTCP, &at, port + 1);
        } else {
            s->fd[RTCP] = s->fd[RTP];
            s->fd[RTP] = -1;
            rc = bind_socket(s, RTP, &at, port - 1);
        }
        if (rc < 0)
            close_pair(s);
    }
    return rc;
}

static void rtp_sockets_close(struct rtp_sockets *s)
{
    if (!s)
        return;
    close_pair(s);
    free(s);
}

static struct rtp_sockets *create_sockets(int rtsp_fd)
{
    struct rtp_sockets *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->fd[0] = s->fd[1] = -1;
    getsockname(rtsp_fd, (struct sockaddr *)&s->local, &(socklen_t){sizeof s->local});
    getpeername(rtsp_fd, (struct sockaddr *)&s->peer, &(socklen_t){sizeof s->peer});
    return s;
}

// Opens a pair of ports, the first one even, at the local address of the RTSP connection `rtsp_fd`.
// Returns 0 or a negative errno.
static int rtp_sockets_open(struct rtp_sockets **ret, int rtsp_fd)
{
    struct rtp_sockets *s = create_sockets(rtsp_fd);
    int rc = s ? bind_pair(s) : -ENOMEM;
    if (rc < 0)
        rtp_sockets_close(s);
    else
        *ret = s;
    return rc;
}

static int rtp_sockets_port(const struct rtp_sockets *s)
{
    struct sockaddr_storage at = {0};
    getsockname(s->fd[RTP], (struct sockaddr *)&at, &(socklen_t){sizeof at});
    return port_of(&at);
}

// Sets the camera's announced ports (0: none) and a further address that it may send from: numeric,
// else it is ignored.
static void rtp_sockets_set_peer(struct rtp_sockets *s, const int ports[2], const char *source)
{
    memcpy(s->peer_port, ports, sizeof s->peer_port);
    parse_address(&s->source, source);
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

static bool is_multicast(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6
               ? IN6_IS_ADDR_MULTICAST(&((const struct sockaddr_in6 *)a)->sin6_addr)
               : a->ss_family == AF_INET &&
                     IN_MULTICAST(ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr));
}

static int join_group(struct rtp_sockets *s, int fd, unsigned interface)
{
    const int level = s->group.ss_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
    struct group_source_req from = {.gsr_interface = interface, .gsr_group = s->group};
    const struct group_req any = {.gr_interface = interface, .gr_group = s->group};
    from.gsr_source = s->source.ss_family ? s->source : s->peer;
    if (setsockopt(fd, level, MCAST_JOIN_SOURCE_GROUP, &from, sizeof from) == 0)
        return 0;
    s->from_anybody = true;
    return setsockopt(fd, level, MCAST_JOIN_GROUP, &any, sizeof any) < 0 ? -errno : 0;
}

// Sends reports to the group through the interface that it was joined on.
static void set_interface(const struct rtp_sockets *s, int fd, unsigned interface, int ttl)
{
    const struct ip_mreqn by = {.imr_ifindex = (int)interface};
    if (s->group.ss_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &interface, sizeof interface);
        setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &ttl, sizeof ttl);
    } else {
        setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof by);
        setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &ttl, sizeof ttl);
    }
}

// Joins a group on the RTSP connection's interface, at first for packets from the camera alone.
// Returns 0; -EINVAL: no numeric multicast address, or no port; another negative errno.
static int rtp_sockets_join(struct rtp_sockets **ret, int rtsp_fd, const char *group,
                            const int ports[2], int ttl, const char *source)
{
    int rc = 0;
    struct rtp_sockets *s = create_sockets(rtsp_fd);
    if (!s)
        return -ENOMEM;
    s->multicast = true;
    rtp_sockets_set_peer(s, ports, source);
    if (!parse_address(&s->group, group) || !is_multicast(&s->group) || ports[0] <= 0 ||
        s->group.ss_family != s->local.ss_family)
        rc = -EINVAL;
    const unsigned interface = interface_of(&s->local);
    for (int i = 0; i < 2 && rc == 0; i++) {
        struct sockaddr_storage at = s->group; // excludes packets of other groups
        if (ports[i] > 0 && (rc = bind_socket(s, i, &at, ports[i])) == 0)
            rc = join_group(s, s->fd[i], interface);
        if (rc == 0 && s->fd[i] >= 0)
            set_interface(s, s->fd[i], interface, ttl > 0 ? ttl : 1);
    }
    if (rc < 0)
        rtp_sockets_close(s);
    else
        *ret = s;
    return rc;
}

bool rtp_sockets_is_narrow(const struct rtp_sockets *s)
{
    return s->multicast && !s->from_anybody;
}

void rtp_sockets_widen(struct rtp_sockets *s)
{
    const int level = s->group.ss_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
    const unsigned interface = interface_of(&s->local);
    struct group_source_req from = {.gsr_interface = interface, .gsr_group = s->group};
    const struct group_req any = {.gr_interface = interface, .gr_group = s->group};
    from.gsr_source = s->source.ss_family ? s->source : s->peer;
    for (int i = 0; i < 2 && s->multicast && !s->from_anybody; i++) {
        if (s->fd[i] < 0)
            continue;
        setsockopt(s->fd[i], level, MCAST_LEAVE_SOURCE_GROUP, &from, sizeof from);
        setsockopt(s->fd[i], level, MCAST_JOIN_GROUP, &any, sizeof any);
    }
    s->from_anybody = true;
}

// --- sockets: datagrams

int rtp_sockets_poll(const struct rtp_sockets *s, struct pollfd *fds)
{
    int n = 0;
    for (int i = 0; i < 2; i++)
        if (s->fd[i] >= 0)
            fds[n++] = (struct pollfd){.fd = s->fd[i], .events = POLLIN};
    return n;
}

static void note_overruns(struct rtp_sockets *s, int which, struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL)
            memcpy(&s->overruns[which], CMSG_DATA(c), sizeof s->overruns[which]);
}

static bool is_from_camera(const struct rtp_sockets *s, int which)
{
    const bool host = s->from_anybody || same_host(&s->sender, &s->peer) ||
                      (s->source.ss_family && same_host(&s->sender, &s->source));
    return host && (which == RTCP || !s->settled_port || s->settled_port == port_of(&s->sender));
}

ssize_t rtp_sockets_read(struct rtp_sockets *s, const uint8_t **data)
{
    for (int which = RTP; which <= RTCP; which++) {
        for (int i = 0; i < FOREIGN_MAX; i++) {
            _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(uint32_t))];
            struct iovec to = {s->datagram, sizeof s->datagram};
            struct msghdr message = {.msg_name = &s->sender,
                                     .msg_namelen = sizeof s->sender,
                                     .msg_iov = &to,
                                     .msg_iovlen = 1,
                                     .msg_control = control,
                                     .msg_controllen = sizeof control};
            const ssize_t n = s->fd[which] < 0 ? -1 : recvmsg(s->fd[which], &message, MSG_DONTWAIT);
            if (n < 0)
                break;
            note_overruns(s, which, &message);
            if (!is_from_camera(s, which))
                continue;
            s->sender_socket = which;
            *data = s->datagram;
            return n;
        }
    }
    return -EAGAIN;
}

void rtp_sockets_settle(struct rtp_sockets *s)
{
    if (!s->settled_port && s->sender_socket == RTP)
        s->settled_port = port_of(&s->sender);
}

// Sends to the camera's RTP or RTCP port; a datagram that cannot be sent is lost.
static void rtp_sockets_send(struct rtp_sockets *s, bool rtcp, const uint8_t *data, size_t bytes)
{
    struct sockaddr_storage to = s->multicast ? s->group : s->peer;
    if (s->fd[rtcp] < 0 || !s->peer_port[rtcp])
        return;
    set_port(&to, s->peer_port[rtcp]);
    sendto(s->fd[rtcp], data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to,
           address_size(&to));
}

uint64_t rtp_sockets_overruns(const struct rtp_sockets *s)
{
    return (uint64_t)s->overruns[RTP] + s->overruns[RTCP];
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
    int rc = 0, port = 0;
    *c = (struct rtsp_carriage){.transport = transport, .channels = {0, 1}};
    switch (transport) {
    case TRANSPORT_TCP:
        snprintf(header, size, "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n");
        break;
    case TRANSPORT_UDP:
        if ((rc = rtp_sockets_open(&c->sockets, rtsp_connection_fd(connection))) == 0)
            port = rtp_sockets_port(c->sockets);
        snprintf(header, size, "Transport: RTP/AVP;unicast;client_port=%d-%d\r\n", port, port + 1);
        break;
    case TRANSPORT_MULTICAST:
        snprintf(header, size, "Transport: RTP/AVP;multicast\r\n");
        break;
    }
    return rc;
}

static int join_multicast(struct rtsp_carriage *c, const struct rtsp_transport *answer,
                          const struct sdp_media *media, const struct rtsp_connection *connection)
{
    const char *group = *answer->destination ? answer->destination : media->address;
    int ports[2] = {answer->ports[0], answer->ports[1]};
    if (!ports[0] && media->port) {
        ports[0] = media->port;
        ports[1] = media->port + 1;
    }
    rtsp_carriage_close(c);
    c->transport = TRANSPORT_MULTICAST;
    return rtp_sockets_join(&c->sockets, rtsp_connection_fd(connection), group, ports,
                            answer->ttl ? answer->ttl : media->ttl, answer->source);
}

int rtsp_carriage_answer(struct rtsp_carriage *c, const char *header, const struct sdp_media *media,
                         const struct rtsp_connection *connection)
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
    if (answer.multicast || c->transport == TRANSPORT_MULTICAST)
        return join_multicast(c, &answer, media, connection);
    rtp_sockets_set_peer(c->sockets, answer.server_ports, answer.source);
    return 0;
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
    rtp_sockets_send(c->sockets, false, rtp, sizeof rtp);
    rtp_sockets_send(c->sockets, true, report, sizeof report);
}

int rtsp_carriage_send(struct rtsp_carriage *c, struct rtsp_connection *connection,
                       const uint8_t *data, size_t bytes)
{
    uint8_t frame[4 + RTCP_REPORT_MAX] = {'$', (uint8_t)c->channels[1], (uint8_t)(bytes >> 8),
                                          (uint8_t)bytes};
    if (c->transport != TRANSPORT_TCP) {
        rtp_sockets_send(c->sockets, true, data, bytes);
        return 0;
    }
    if (rtsp_connection_is_sending(connection))
        return 0;
    memcpy(frame + 4, data, bytes);
    return rtsp_connection_write(connection, frame, 4 + bytes);
}

void rtsp_carriage_close(struct rtsp_carriage *c)
{
    rtp_sockets_close(c->sockets);
    c->sockets = NULL;
}
