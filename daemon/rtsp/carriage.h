// The transport of a session's media: inside the RTSP connection, or over UDP, unicast or
// multicast. Never blocks. One thread uses a carriage.
#ifndef FRAMED_DAEMON_RTSP_CARRIAGE_H
#define FRAMED_DAEMON_RTSP_CARRIAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "daemon/rtsp/connection.h"

struct sdp_media;

struct rtsp_carriage { // closed if each `fd` is -1 and the rest zeroed
    enum transport transport;
    uint32_t ssrc;   // named by the camera; 0: unknown
    int channels[2]; // for TCP: RTP's and RTCP's
    // The sockets of RTP and RTCP.
    int fd[2];                           // -1: none
    uint32_t overruns[2];                // packets dropped by our own kernel
    struct sockaddr_storage local, peer; // of the RTSP connection
    struct sockaddr_storage source;      // another address that the camera may send from; AF_UNSPEC
    struct sockaddr_storage group;       // of multicast; AF_UNSPEC: unicast
    unsigned interface;                  // on which it was joined; 0: the system chose
    bool from_anybody;                   // it was joined for any sender
    int peer_port[2];                    // announced by the camera; 0: unknown
    struct sockaddr_storage sender;      // of the datagram read last
    int sender_socket;                   // its socket: RTP, RTCP
    int confirmed_port;                  // of RTP; 0: any
    uint8_t datagram[64 << 10];
};

// Writes SETUP's Transport header as a complete line; opens the ports for unicast, the first one
// even. Returns 0 or a negative errno.
int rtsp_carriage_ask(struct rtsp_carriage *, enum transport, const struct rtsp_connection *,
                      char *header, size_t size);
// Applies the Transport header of the reply; NULL: there is none. Joins a multicast group, at first
// for packets from the camera alone. Returns 0; -EXDEV: the camera chose TCP, but UDP was
// requested; another negative errno.
int rtsp_carriage_answer(struct rtsp_carriage *, const char *header, const struct sdp_media *);
void rtsp_carriage_close(struct rtsp_carriage *);
// Opens firewalls between the camera and us for media.
void rtsp_carriage_punch(struct rtsp_carriage *, int payload_type, uint32_t ssrc);
// Sends a compound RTCP packet, unless the connection is full. Returns 0 or the connection's error.
int rtsp_carriage_send(struct rtsp_carriage *, struct rtsp_connection *, const uint8_t *data,
                       size_t bytes);

// --- without sockets, these do nothing

// Reads the camera's next datagram, valid until the next call. Returns its size or -EAGAIN.
ssize_t rtsp_carriage_read(struct rtsp_carriage *, const uint8_t **data);
// Confirms that the last datagram belongs to the track: accepts RTP only from its port from now on.
void rtsp_carriage_confirm(struct rtsp_carriage *);
void rtsp_carriage_widen(struct rtsp_carriage *); // accepts the group's packets from any sender

// --- the Transport header of SETUP's reply, as cameras write it

struct rtsp_transport {
    bool tcp; // TCP or interleaved channels are named
    bool multicast;
    int channels[2];                  // -1: not named
    int server_ports[2];              // for unicast; 0: not named or impossible
    int ports[2], ttl;                // for multicast; 0: not named
    uint32_t ssrc;                    // a hint; 0: not named
    char source[64], destination[64]; // "": not named
};

void rtsp_transport_parse(struct rtsp_transport *ret, const char *value); // `value` may be NULL

#endif
