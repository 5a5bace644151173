#include "daemon/onvif/onvif.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/onvif/soap.h"

enum {
    PORT = 3702,
    SOCKETS_MAX = 64,
    DEVICES_MAX = 256, // further devices are ignored
    ROUNDS = 3,
    ROUND_MS = 400,
    DATAGRAMS_A_TURN = 256,
    DATAGRAM_MAX = 64 << 10,
};

struct search {
    struct pollfd socket[SOCKETS_MAX];
    struct sockaddr_storage group[SOCKETS_MAX]; // the destination of each socket
    int n_sockets;
    char known[DEVICES_MAX][384]; // endpoints, or URLs of devices without one
    int n_known;
    void (*found)(void *opaque, const struct ws_match *);
    void *opaque;
};

// --- responses

// Some devices respond to one type only, some to the other.
static const char *const types[] = {"n:NetworkVideoTransmitter", "t:Device"};

// Copies the rest of the scope that begins with `prefix`, percent-decoded; ? replaces non-ASCII.
static void read_scope(const char *scopes, const char *prefix, char *to, size_t size)
{
    const char *p = strstr(scopes, prefix);
    size_t used = 0;
    for (p = p ? p + strlen(prefix) : ""; *p && *p != ' ' && used + 1 < size; p++) {
        unsigned byte;
        char character = *p == '_' ? ' ' : *p;
        if (sscanf(p, "%%%2x", &byte) == 1 && p[1] && p[2]) {
            character = byte >= ' ' && byte < 0x7f ? (char)byte : '?';
            p += 2;
        }
        to[used++] = character;
    }
    const bool is_full = used + 1 == size; // the last character may have been cut
    while (is_full && used > 0 && to[used - 1] & 0x80)
        used--;
    to[used] = 0;
}

// Joins scheme, port and path of the first address with scheme `wanted` to `host`.
static bool read_address(const char *addresses, const char *wanted, const char *host, char *to,
                         size_t size)
{
    const char *p = strstr(addresses, wanted);
    if (!p)
        return false;
    const size_t scheme = strcspn(p, "/") + 2;
    const char *authority = p + scheme;
    const char *end = authority + strcspn(authority, "/ ?#@"); // @ follows a login: refused below
    const char *bracket =
        *authority == '[' ? memchr(authority, ']', (size_t)(end - authority)) : NULL;
    const char *from = bracket ? bracket : authority;
    const char *colon = memchr(from, ':', (size_t)(end - from));
    const size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
    const bool port = colon && digits > 0 && digits <= 5 && colon + 1 + digits == end;
    const char *six = strchr(host, ':') ? "[" : "", *zone = strchr(host, '%');
    if (*end == '@')
        return false;
    const int n =
        snprintf(to, size, "%.*s%s%.*s%s%s%s%.*s%.*s", (int)scheme, p, six, (int)strcspn(host, "%"),
                 host, zone ? "%25" : "", zone ? zone + 1 : "", *six ? "]" : "",
                 port ? (int)digits + 1 : 0, port ? colon : "", (int)strcspn(end, " "), end);
    return n > 0 && (size_t)n < size;
}

int ws_discovery_read(struct ws_match *ret, const char *host, const char *data, size_t size)
{
    char texts[2048];
    xmlDoc *document = xml_read(data, size);
    const xmlNode *match = xml_find(xmlDocGetRootElement(document), "Body/ProbeMatches/ProbeMatch");
    bool camera = false;
    *ret = (struct ws_match){0};
    if (match) {
        snprintf(ret->host, sizeof ret->host, "%s", host);
        xml_text(match, "Types", texts, sizeof texts);
        camera = strstr(texts, "NetworkVideoTransmitter") || strstr(texts, "Device");
        xml_text(match, "Scopes", texts, sizeof texts);
        read_scope(texts, "onvif://www.onvif.org/name/", ret->name, sizeof ret->name);
        read_scope(texts, "onvif://www.onvif.org/hardware/", ret->model, sizeof ret->model);
        xml_text(match, "EndpointReference/Address", ret->endpoint, sizeof ret->endpoint);
        xml_text(match, "XAddrs", texts, sizeof texts);
        if (!read_address(texts, "https://", host, ret->secure_url, sizeof ret->secure_url))
            *ret->secure_url = 0;
        if (!read_address(texts, "http://", host, ret->url, sizeof ret->url))
            memcpy(ret->url, ret->secure_url, sizeof ret->url);
        camera = camera && *ret->url;
    }
    xmlFreeDoc(document);
    return camera ? 0 : -EBADMSG;
}

static bool is_known(struct search *search, const struct ws_match *match)
{
    const char *id = *match->endpoint ? match->endpoint : match->url;
    for (int i = 0; i < search->n_known; i++)
        if (strncmp(search->known[i], id, sizeof search->known[i] - 1) == 0)
            return true;
    if (search->n_known == DEVICES_MAX)
        return true;
    snprintf(search->known[search->n_known++], sizeof search->known[0], "%s", id);
    return false;
}

// Reads the datagrams that wait at a socket, but not forever if somebody sends without end.
static void take_answers(struct search *search, int fd, char *datagram)
{
    for (int i = 0; i < DATAGRAMS_A_TURN; i++) {
        struct sockaddr_storage from;
        socklen_t length = sizeof from;
        struct ws_match match;
        char host[WS_DISCOVERY_HOST_MAX];
        const ssize_t n =
            recvfrom(fd, datagram, DATAGRAM_MAX, MSG_DONTWAIT, (struct sockaddr *)&from, &length);
        if (n < 0)
            return;
        if (getnameinfo((struct sockaddr *)&from, length, host, sizeof host, NULL, 0,
                        NI_NUMERICHOST) == 0 &&
            ws_discovery_read(&match, host, datagram, (size_t)n) == 0 && !is_known(search, &match))
            search->found(search->opaque, &match);
    }
}

// --- requests

// A version 4 UUID.
static void make_uuid(char to[37])
{
    uint8_t b[16] = {0};
    if (getrandom(b, sizeof b, 0) < 0) // a duplicate does no harm
        memcpy(b, &(int64_t){monotonic_ns()}, sizeof(int64_t));
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    snprintf(to, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
             b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

// Sends by IPv6 in the last round only, when devices with an IPv4 address are known: over a
// link-local address their RTSP server reports no URL that works elsewhere.
static void ask_once(struct search *search, bool last)
{
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        char uuid[37], text[1024];
        make_uuid(uuid);
        const int n = snprintf(
            text, sizeof text,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
            "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\""
            " xmlns:a=\"http://schemas.xmlsoap.org/ws/2004/08/addressing\""
            " xmlns:d=\"http://schemas.xmlsoap.org/ws/2005/04/discovery\""
            " xmlns:n=\"http://www.onvif.org/ver10/network/wsdl\""
            " xmlns:t=\"http://www.onvif.org/ver10/device/wsdl\">"
            "<s:Header><a:MessageID>urn:uuid:%s</a:MessageID>"
            "<a:To>urn:schemas-xmlsoap-org:ws:2005:04:discovery</a:To>"
            "<a:Action>http://schemas.xmlsoap.org/ws/2005/04/discovery/Probe</a:Action></s:Header>"
            "<s:Body><d:Probe><d:Types>%s</d:Types></d:Probe></s:Body></s:Envelope>",
            uuid, types[t]);
        for (int i = 0; i < search->n_sockets; i++) {
            const bool four = search->group[i].ss_family == AF_INET;
            if (four || last)
                sendto(search->socket[i].fd, text, (size_t)n, 0,
                       (struct sockaddr *)&search->group[i],
                       four ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
        }
    }
}

// Opens a socket that sends on the interface of this address. False: it has no multicast, or this
// is an IPv6 address other than its link-local one.
static bool open_socket(struct search *search, const struct ifaddrs *interface)
{
    const int family = interface->ifa_addr->sa_family;
    const int index = (int)if_nametoindex(interface->ifa_name);
    const struct sockaddr_in *own = (const struct sockaddr_in *)interface->ifa_addr;
    const struct sockaddr_in6 *own6 = (const struct sockaddr_in6 *)interface->ifa_addr;
    struct sockaddr_in6 group6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(PORT), .sin6_scope_id = (uint32_t)index};
    struct sockaddr_in group = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = fd < 0 ? -1 : 0;
    if (rc == 0 && family == AF_INET) {
        inet_pton(AF_INET, "239.255.255.250", &group.sin_addr);
        rc = setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &own->sin_addr, sizeof own->sin_addr);
        memcpy(&search->group[search->n_sockets], &group, sizeof group);
    } else if (rc == 0) {
        inet_pton(AF_INET6, "ff02::c", &group6.sin6_addr);
        rc = IN6_IS_ADDR_LINKLOCAL(&own6->sin6_addr)
                 ? setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof index)
                 : -1;
        memcpy(&search->group[search->n_sockets], &group6, sizeof group6);
    }
    if (rc == 0)
        search->socket[search->n_sockets++] = (struct pollfd){.fd = fd, .events = POLLIN};
    else if (fd >= 0)
        close(fd);
    return rc == 0;
}

static int open_sockets(struct search *search)
{
    struct ifaddrs *interfaces;
    if (getifaddrs(&interfaces) < 0)
        return -errno;
    for (const struct ifaddrs *i = interfaces; i && search->n_sockets < SOCKETS_MAX;
         i = i->ifa_next)
        if (i->ifa_addr && (i->ifa_flags & IFF_UP) &&
            (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6))
            open_socket(search, i);
    freeifaddrs(interfaces);
    return search->n_sockets > 0 ? 0 : -ENETDOWN;
}

int ws_discovery_run(double seconds, void (*found)(void *opaque, const struct ws_match *),
                     void *opaque)
{
    struct search *search = calloc(1, sizeof *search);
    char *datagram = malloc(DATAGRAM_MAX);
    int rc = search && datagram ? open_sockets(search) : -ENOMEM;
    if (rc == 0) {
        const int64_t begun = monotonic_ns(), end = begun + (int64_t)(seconds * 1e9);
        search->found = found;
        search->opaque = opaque;
        for (int64_t now = begun, rounds = 0; now < end; now = monotonic_ns()) {
            const int64_t next = begun + rounds * ROUND_MS * INT64_C(1000000);
            if (rounds < ROUNDS && now >= next) {
                ask_once(search, ++rounds == ROUNDS);
                continue;
            }
            const int64_t until = rounds < ROUNDS && next < end ? next : end;
            poll(search->socket, (nfds_t)search->n_sockets, (int)((until - now) / 1000000) + 1);
            for (int i = 0; i < search->n_sockets; i++)
                if (search->socket[i].revents)
                    take_answers(search, search->socket[i].fd, datagram);
        }
    }
    for (int i = 0; search && i < search->n_sockets; i++)
        close(search->socket[i].fd);
    free(datagram);
    free(search);
    return rc;
}
