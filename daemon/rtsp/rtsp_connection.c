#include "daemon/rtsp/rtsp_connection.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/rtsp/name_lookup.h"
#include "daemon/rtsp/rtsp_tls.h"

static const int64_t SECOND_TRY_NS = 1500000000;
enum {
    ADDRESSES_MAX = 4,     // of one name
    QUEUE_MAX = 64 << 10,  // bytes waiting to be sent
    RECORD_MAX = 17 << 10, // bytes of one read for TLS: no record is larger
};

enum phase { LOOKING_UP, CONNECTING, SHAKING_HANDS, CONNECTED };

struct rtsp_connection {
    enum phase phase;
    struct name_lookup *lookup;
    const struct addrinfo *addresses; // owned by `lookup`
    int n_addresses, n_begun;         // connects; the i-th one is to address i % n_addresses
    int half_open[2];                 // sockets; -1: none
    int64_t begun_ns;                 // when the last connect began
    int fd;                           // -1 until it is connected
    const struct tls_config *tls_config;
    struct rtsp_tls *tls;
    char host[256];
    uint8_t *queue;
    size_t queued;
};

int rtsp_connection_open(struct rtsp_connection **ret, const char *host, int port,
                         const struct tls_config *tls, int64_t now_ns)
{
    struct rtsp_connection *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    c->fd = c->half_open[0] = c->half_open[1] = -1;
    c->tls_config = tls;
    c->begun_ns = now_ns;
    snprintf(c->host, sizeof c->host, "%s", host);
    int rc = (c->queue = malloc(QUEUE_MAX)) ? name_lookup_open(&c->lookup, host, port) : -ENOMEM;
    if (rc < 0)
        rtsp_connection_close(c);
    else
        *ret = c;
    return rc;
}

static void close_descriptor(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void rtsp_connection_close(struct rtsp_connection *c)
{
    if (!c)
        return;
    rtsp_tls_close(c->tls);
    close_descriptor(&c->half_open[0]);
    close_descriptor(&c->half_open[1]);
    close_descriptor(&c->fd);
    name_lookup_close(c->lookup);
    free(c->queue);
    free(c);
}

static bool may_double(const struct rtsp_connection *c)
{
    return c->n_begun <= c->n_addresses && (c->half_open[0] < 0 || c->half_open[1] < 0);
}

int rtsp_connection_poll(const struct rtsp_connection *c, struct pollfd *fds, int64_t *due_ns)
{
    int n = 0;
    *due_ns = INT64_MAX;
    if (c->phase == LOOKING_UP) {
        if (name_lookup_fd(c->lookup) >= 0)
            fds[n++] = (struct pollfd){.fd = name_lookup_fd(c->lookup), .events = POLLIN};
        else
            *due_ns = c->begun_ns;
        return n;
    }
    for (int i = 0; i < 2; i++)
        if (c->half_open[i] >= 0)
            fds[n++] = (struct pollfd){.fd = c->half_open[i], .events = POLLOUT};
    if (c->phase == CONNECTING && may_double(c))
        *due_ns = c->begun_ns + SECOND_TRY_NS;
    if (c->fd >= 0)
        fds[n++] = (struct pollfd){.fd = c->fd, .events = POLLIN | (c->queued ? POLLOUT : 0)};
    return n;
}

// --- connecting

// Maps EACCES and EPERM, which come from a firewall here: elsewhere they mean a camera's refusal.
static int connect_errno(int error)
{
    return error == EACCES || error == EPERM ? -EHOSTUNREACH : -error;
}

static int begin_connect(struct rtsp_connection *c, int64_t now_ns)
{
    int *slot = c->half_open[0] < 0 ? &c->half_open[0] : &c->half_open[1];
    const struct addrinfo *address = c->addresses;
    for (int i = c->n_begun % c->n_addresses; i > 0; i--)
        address = address->ai_next;
    c->n_begun++;
    c->begun_ns = now_ns;
    *slot = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*slot < 0)
        return -errno;
    if (connect(*slot, address->ai_addr, address->ai_addrlen) == 0 || errno == EINPROGRESS)
        return 0;
    int rc = connect_errno(errno);
    close_descriptor(slot);
    return rc;
}

static void begin_handshake(struct rtsp_connection *c, int *winner)
{
    const int one = 1;
    c->fd = *winner;
    *winner = -1;
    close_descriptor(&c->half_open[0]);
    close_descriptor(&c->half_open[1]);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->phase = c->tls_config ? SHAKING_HANDS : CONNECTED;
}

// Returns 0 if a half-open socket is connected, -EAGAIN, or the error of the last one that failed.
static int await_connect(struct rtsp_connection *c, int64_t now_ns)
{
    int rc = -EAGAIN;
    for (int i = 0; i < 2; i++) {
        int error = 0;
        struct pollfd ready = {.fd = c->half_open[i], .events = POLLOUT};
        if (c->half_open[i] < 0 || poll(&ready, 1, 0) <= 0)
            continue;
        getsockopt(c->half_open[i], SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error});
        if (error == 0) {
            begin_handshake(c, &c->half_open[i]);
            return 0;
        }
        close_descriptor(&c->half_open[i]);
        rc = connect_errno(error);
    }
    // After a refusal, try the next address without waiting.
    while (rc != -EAGAIN && c->n_begun < c->n_addresses)
        if ((rc = begin_connect(c, now_ns)) == 0)
            rc = -EAGAIN;
    if (may_double(c) && c->n_begun && now_ns >= c->begun_ns + SECOND_TRY_NS)
        begin_connect(c, now_ns); // beside the first, which may still answer
    return c->half_open[0] >= 0 || c->half_open[1] >= 0 ? -EAGAIN : rc;
}

static const char *connect_error(int rc)
{
    switch (rc) {
    case -ECONNREFUSED:
        return "refused the connection";
    case -ENETUNREACH:
    case -EHOSTUNREACH:
        return "cannot be reached from here";
    case -ETIMEDOUT:
        return "did not answer";
    default:
        return strerror(-rc);
    }
}

static int look_up_addresses(struct rtsp_connection *c, int64_t now_ns, char *why, size_t size)
{
    char reason[128];
    int rc = name_lookup_read(c->lookup, &c->addresses, reason, sizeof reason);
    if (rc == -ENXIO)
        snprintf(why, size, "is a name that was not found: %s", reason);
    if (rc < 0)
        return rc;
    for (const struct addrinfo *a = c->addresses; a && c->n_addresses < ADDRESSES_MAX;
         a = a->ai_next)
        c->n_addresses++;
    c->phase = CONNECTING;
    rc = begin_connect(c, now_ns);
    while (rc < 0 && c->n_begun < c->n_addresses)
        rc = begin_connect(c, now_ns);
    if (rc < 0)
        snprintf(why, size, "%s", connect_error(rc));
    return rc;
}

// Queues the records of TLS and sends them.
static int queue_records(struct rtsp_connection *c)
{
    c->queued += rtsp_tls_take(c->tls, c->queue + c->queued, QUEUE_MAX - c->queued);
    return rtsp_connection_flush(c);
}

// Passes network bytes to TLS. Returns 1: some came; 0: the end; -EAGAIN; another negative errno.
static int feed_tls(struct rtsp_connection *c)
{
    uint8_t record[RECORD_MAX];
    ssize_t n = recv(c->fd, record, sizeof record, MSG_DONTWAIT);
    if (n <= 0)
        return n == 0 ? 0 : errno == EINTR ? -EAGAIN : -errno;
    int rc = rtsp_tls_put(c->tls, record, (size_t)n);
    return rc < 0 ? rc : 1;
}

static int shake_hands(struct rtsp_connection *c, char *why, size_t size)
{
    int rc = c->tls ? 0 : rtsp_tls_open(&c->tls, c->tls_config, c->host, why, size);
    if (rc < 0)
        return rc;
    while (rc == 0) {
        const int shaken = rtsp_tls_handshake(c->tls, why, size);
        rc = queue_records(c); // including an alert, which gives the server the reason
        if (shaken == 0 && rc == 0)
            c->phase = CONNECTED;
        if (shaken != -EAGAIN)
            return shaken < 0 ? shaken : rc;
        int fed = rc < 0 ? rc : feed_tls(c);
        if (fed == 0)
            snprintf(why, size, "hung up during the TLS handshake");
        rc = fed > 0 ? 0 : fed < 0 ? fed : -ECONNRESET;
    }
    return rc;
}

int rtsp_connection_connect(struct rtsp_connection *c, int64_t now_ns, char *why, size_t size)
{
    int rc = 0;
    why[0] = 0;
    if (c->phase == LOOKING_UP)
        rc = look_up_addresses(c, now_ns, why, size);
    if (rc == 0 && c->phase == CONNECTING && (rc = await_connect(c, now_ns)) < 0)
        snprintf(why, size, "%s", connect_error(rc));
    if (rc == 0 && c->phase == SHAKING_HANDS)
        rc = shake_hands(c, why, size);
    if (rc < 0 && rc != -EAGAIN && !why[0])
        snprintf(why, size, "%s", connect_error(rc));
    return rc;
}

// --- bytes

ssize_t rtsp_connection_read(struct rtsp_connection *c, uint8_t *to, size_t room)
{
    ssize_t n;
    if (!c->tls) {
        n = recv(c->fd, to, room, MSG_DONTWAIT);
        return n >= 0 ? n : errno == EINTR ? -EAGAIN : -errno;
    }
    while ((n = rtsp_tls_read(c->tls, to, room)) == -EAGAIN) {
        int fed = feed_tls(c);
        if (fed <= 0)
            return fed;
    }
    int rc = queue_records(c); // a renewed key
    return rc < 0 && n <= 0 ? rc : n;
}

int rtsp_connection_flush(struct rtsp_connection *c)
{
    size_t sent = 0;
    int rc = 0;
    while (rc == 0 && sent < c->queued) {
        ssize_t n = send(c->fd, c->queue + sent, c->queued - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0)
            sent += (size_t)n;
        else if (errno != EINTR)
            rc = -errno;
    }
    c->queued -= sent;
    if (sent)
        memmove(c->queue, c->queue + sent, c->queued);
    return rc == -EAGAIN ? 0 : rc;
}

int rtsp_connection_write(struct rtsp_connection *c, const void *data, size_t bytes)
{
    const size_t overhead = c->tls ? 1024 : 0; // of TLS records
    if (c->phase != CONNECTED)
        return -ENOTCONN;
    if (bytes + overhead > QUEUE_MAX - c->queued)
        return -ENOBUFS;
    if (c->tls) {
        int rc = rtsp_tls_write(c->tls, data, bytes);
        return rc < 0 ? rc : queue_records(c);
    }
    memcpy(c->queue + c->queued, data, bytes);
    c->queued += bytes;
    return rtsp_connection_flush(c);
}

bool rtsp_connection_is_sending(const struct rtsp_connection *c)
{
    return c->queued > 0;
}

int rtsp_connection_fd(const struct rtsp_connection *c)
{
    return c->fd;
}
