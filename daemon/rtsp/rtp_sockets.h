// The two sockets of a track over UDP, RTP's and RTCP's: a pair of ports for a unicast camera, or
// those of a multicast group. Never blocks. One thread uses them.
#ifndef FRAMED_DAEMON_RTSP_RTP_SOCKETS_H
#define FRAMED_DAEMON_RTSP_RTP_SOCKETS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { RTP_SOCKETS_POLL_MAX = 2 };

struct rtp_sockets;

// A pair of ports, the first of them even, at the own address of the RTSP connection `rtsp_fd`. 0
// or negative errno.
int rtp_sockets_open(struct rtp_sockets **ret, int rtsp_fd);
int rtp_sockets_port(const struct rtp_sockets *); // the first port
// The camera's announced ports, 0 where it named none, and the address that it says to send from
// beside its own: in digits, else it is ignored.
void rtp_sockets_set_peer(struct rtp_sockets *, const int ports[2], const char *source);

// Joins a group on the interface of the RTSP connection, at first for what comes from the camera
// alone. -EINVAL: `group` is no multicast address in digits, or there is no port; other errno.
int rtp_sockets_join(struct rtp_sockets **ret, int rtsp_fd, const char *group, const int ports[2],
                     int ttl, const char *source);
bool rtp_sockets_is_narrow(const struct rtp_sockets *); // a group, from the camera alone
void rtp_sockets_widen(struct rtp_sockets *);           // takes packets of the group from anybody

void rtp_sockets_close(struct rtp_sockets *);                         // accepts NULL
int rtp_sockets_poll(const struct rtp_sockets *, struct pollfd *fds); // how many
// The next datagram of the camera, valid until the next call; its size, or -EAGAIN.
ssize_t rtp_sockets_read(struct rtp_sockets *, const uint8_t **data);
// The datagram read last is of the track: from now on media come from its sender alone.
void rtp_sockets_settle(struct rtp_sockets *);
// Sends to the camera's RTP port, or RTCP port: what cannot be sent is lost, as with UDP.
void rtp_sockets_send(struct rtp_sockets *, bool rtcp, const uint8_t *data, size_t bytes);
uint64_t rtp_sockets_overruns(const struct rtp_sockets *); // packets that our own kernel dropped

#endif
