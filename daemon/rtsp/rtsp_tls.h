// TLS without a socket: the caller puts in bytes from the network and takes out bytes for it. Never
// blocks. One thread uses a tls.
#ifndef FRAMED_DAEMON_RTSP_RTSP_TLS_H
#define FRAMED_DAEMON_RTSP_RTSP_TLS_H

#include <sys/types.h>

#include "config/config.h"

struct rtsp_tls;

// `host` is the name or address that the certificate must be for. Returns 0; -EINVAL: `ca` cannot
// be read, and `why` gets the reason; -ENOMEM.
int rtsp_tls_open(struct rtsp_tls **ret, const struct tls_config *, const char *host, char *why,
                  size_t size);
void rtsp_tls_close(struct rtsp_tls *);                                 // accepts NULL
int rtsp_tls_put(struct rtsp_tls *, const uint8_t *data, size_t bytes); // 0 or -ENOMEM
// Writes bytes for the network to `to`, and returns how many.
size_t rtsp_tls_take(struct rtsp_tls *, uint8_t *to, size_t room);
// Must be called before reads and writes until it returns 0. -EAGAIN: more bytes are needed;
// -EPROTO: no TLS; -EKEYREJECTED: the certificate is not trusted. `why` gets the reason.
int rtsp_tls_handshake(struct rtsp_tls *, char *why, size_t size);
// Reads plain bytes. Returns their number; 0: the end; -EAGAIN; -EPROTO.
ssize_t rtsp_tls_read(struct rtsp_tls *, uint8_t *to, size_t room);
int rtsp_tls_write(struct rtsp_tls *, const void *data, size_t bytes); // all bytes: 0 or -EPROTO

#endif
