// The RTP and RTCP sockets of a track over UDP: a pair of ports for a unicast camera, or those of a
// multicast group. Never blocks. One thread uses them.
#ifndef FRAMED_DAEMON_RTSP_RTP_SOCKETS_H
#define FRAMED_DAEMON_RTSP_RTP_SOCKETS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { RTP_SOCKETS_POLL_MAX = 2 };

struct rtp_sockets;

// Opens a pair of ports, the first one even, at the local address of the RTSP connection `rtsp_fd`.
// Returns 0 or a negative errno.
int rtp_sockets_open(struct rtp_sockets **ret, int rtsp_fd);
int rtp_sockets_port(const struct rtp_sockets *); // the first port
// Sets the camera's announced ports (0: none) and a further address that it may send from: numeric,
// else it is ignored.
void rtp_sockets_set_peer(struct rtp_sockets *, const int ports[2], const char *source);

// Joins a group on the RTSP connection's interface, at first for packets from the camera alone.
// Returns 0; -EINVAL: no numeric multicast address, or no port; another negative errno.
int rtp_sockets_join(struct rtp_sockets **ret, int rtsp_fd, const char *group, const int ports[2],
                     int ttl, const char *source);
bool rtp_sockets_is_narrow(const struct rtp_sockets *); // joined for packets from the camera alone
void rtp_sockets_widen(struct rtp_sockets *); // accepts the group's packets from any sender

void rtp_sockets_close(struct rtp_sockets *);                         // accepts NULL
int rtp_sockets_poll(const struct rtp_sockets *, struct pollfd *fds); // returns how many
// Reads the camera's next datagram, valid until the next call. Returns its size or -EAGAIN.
ssize_t rtp_sockets_read(struct rtp_sockets *, const uint8_t **data);
// Confirms that the last datagram belongs to the track: accepts RTP only from its port from now on.
void rtp_sockets_settle(struct rtp_sockets *);
// Sends to the camera's RTP or RTCP port; a datagram that cannot be sent is lost.
void rtp_sockets_send(struct rtp_sockets *, bool rtcp, const uint8_t *data, size_t bytes);
uint64_t rtp_sockets_overruns(const struct rtp_sockets *); // packets dropped by our own kernel

#endif
