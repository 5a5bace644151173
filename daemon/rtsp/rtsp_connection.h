// A connection to an RTSP server: name look-up, TCP, and TLS where it is wanted. Never blocks. A
// connect that nobody answers is doubled by a second one after 1.5 s; the first answer wins. One
// thread uses a connection.
#ifndef FRAMED_DAEMON_RTSP_RTSP_CONNECTION_H
#define FRAMED_DAEMON_RTSP_RTSP_CONNECTION_H

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#include "config/config.h"

enum { RTSP_CONNECTION_POLL_MAX = 2 };

struct rtsp_connection;

// `tls` NULL: plain TCP; else it outlives the connection. 0 or negative errno.
int rtsp_connection_open(struct rtsp_connection **ret, const char *host, int port,
                         const struct tls_config *tls, int64_t now_ns);
void rtsp_connection_close(struct rtsp_connection *); // accepts NULL
// Returns how many descriptors to poll. *due_ns: when to go on at the latest though none is ready.
int rtsp_connection_poll(const struct rtsp_connection *, struct pollfd *fds, int64_t *due_ns);
// Goes on with connecting. 0: connected; -EAGAIN; -EKEYREJECTED: the certificate; -EPROTO: no TLS;
// -ENXIO: no such name; another negative errno of connect. `why` says what the server did or lacks
// ("refused the connection"), for people.
int rtsp_connection_connect(struct rtsp_connection *, int64_t now_ns, char *why, size_t size);
// Once it is connected. The number of bytes; 0: the end; -EAGAIN; another negative errno.
ssize_t rtsp_connection_read(struct rtsp_connection *, uint8_t *to, size_t room);
// Queues all of it and sends what it can. 0; -ENOBUFS: the server reads nothing any more, and
// nothing was queued; another negative errno.
int rtsp_connection_write(struct rtsp_connection *, const void *data, size_t bytes);
int rtsp_connection_flush(struct rtsp_connection *); // sends what waits: 0 or negative errno
bool rtsp_connection_is_sending(const struct rtsp_connection *); // something waits to be sent
int rtsp_connection_fd(const struct rtsp_connection *);          // for its addresses alone

#endif
