// A connection to an RTSP server: name look-up, TCP and, if configured, TLS. Blocks while it
// connects, never afterwards. A connect without an answer after 1.5 s is replaced by another one,
// to the host's next address, which waits twice as long. At most 16 threads look up names, and
// callers share the look-up of a host. One thread uses a connection.
#ifndef FRAMED_DAEMON_RTSP_CONNECTION_H
#define FRAMED_DAEMON_RTSP_CONNECTION_H

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "config/config.h"

enum { RTSP_QUEUE_MAX = 64 << 10 };

struct rtsp_connection {
    int fd;                 // -1: closed
    size_t queued;          // bytes to send; poll for POLLOUT if there are any
    struct ssl_st *ssl;     // private from here on: reads from `fd`; NULL: plain TCP
    struct bio_st *records; // owned by `ssl`: its records for the network
    uint8_t queue[RTSP_QUEUE_MAX];
};

struct rtsp_server {
    const char *host;
    int port;
    const struct tls_config *tls; // NULL: plain TCP; else it outlives the connection
    unsigned *address;            // of the host's addresses, the first to try; advances
    const _Atomic bool *stop;     // ends a wait within 50 ms
    int64_t until_ns;             // CLOCK_MONOTONIC: limit of all
    int64_t answer_ns;            // limit of the handshake
};

// Connects. Returns 0; -EAGAIN: no answer within a limit; -ECANCELED: *stop; -EKEYREJECTED: the
// certificate; -EPROTO: no TLS; -ENXIO: no such name; another negative errno of connect. `why` gets
// the reason for people, to follow the server's name
// ("refused the connection").
int rtsp_connection_open(struct rtsp_connection *, const struct rtsp_server *, char *why,
                         size_t size);
void rtsp_connection_close(struct rtsp_connection *);
// Sends queued bytes, and returns the bytes read; 0: the end; -EAGAIN; another negative errno.
ssize_t rtsp_connection_read(struct rtsp_connection *, uint8_t *to, size_t room);
// Queues all bytes and sends as many as possible. Returns 0; -ENOBUFS: the server has stopped
// reading, and nothing was queued; another negative errno.
int rtsp_connection_write(struct rtsp_connection *, const void *data, size_t bytes);

// Waits until a descriptor is ready, until CLOCK_MONOTONIC is `until_ns`, or 50 ms.
void rtsp_wait(struct pollfd *fds, int n, int64_t until_ns);

#endif
