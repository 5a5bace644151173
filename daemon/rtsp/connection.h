// A connection to an RTSP server: name look-up, TCP and, if configured, TLS. Never blocks. A
// connect without an answer after 1.5 s gets a second one beside it; the first answer wins. One
// thread uses a connection.
#ifndef FRAMED_DAEMON_RTSP_CONNECTION_H
#define FRAMED_DAEMON_RTSP_CONNECTION_H

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#include "config/config.h"

enum { RTSP_CONNECTION_POLL_MAX = 2 };

struct rtsp_connection;

// `tls` NULL: plain TCP; else it outlives the connection. Returns 0 or a negative errno.
int rtsp_connection_open(struct rtsp_connection **ret, const char *host, int port,
                         const struct tls_config *tls, int64_t now_ns);
void rtsp_connection_close(struct rtsp_connection *); // accepts NULL
// Returns how many descriptors to poll. *due_ns: when to continue even if none is ready.
int rtsp_connection_poll(const struct rtsp_connection *, struct pollfd *fds, int64_t *due_ns);
// Continues to connect. Returns 0: connected; -EAGAIN; -EKEYREJECTED: the certificate; -EPROTO: no
// TLS; -ENXIO: no such name; another negative errno of connect. `why` gets the reason for people,
// to follow the server's name ("refused the connection").
int rtsp_connection_connect(struct rtsp_connection *, int64_t now_ns, char *why, size_t size);
// Reads once connected. Returns the bytes read; 0: the end; -EAGAIN; another negative errno.
ssize_t rtsp_connection_read(struct rtsp_connection *, uint8_t *to, size_t room);
// Queues all bytes and sends as many as possible. Returns 0; -ENOBUFS: the server has stopped
// reading, and nothing was queued; another negative errno.
int rtsp_connection_write(struct rtsp_connection *, const void *data, size_t bytes);
int rtsp_connection_flush(struct rtsp_connection *); // sends queued bytes; 0 or a negative errno
bool rtsp_connection_is_sending(const struct rtsp_connection *); // bytes are queued
int rtsp_connection_fd(const struct rtsp_connection *);          // only for its addresses

#endif
