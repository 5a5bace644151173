// The transport of a session's media: inside the RTSP connection, or over UDP, unicast or
// multicast. One thread uses a carriage.
#ifndef FRAMED_DAEMON_RTSP_RTSP_CARRIAGE_H
#define FRAMED_DAEMON_RTSP_RTSP_CARRIAGE_H

#include "daemon/rtsp/rtp_sockets.h"
#include "daemon/rtsp/rtsp_connection.h"

struct sdp_media;

struct rtsp_carriage {
    enum transport transport;
    uint32_t ssrc;               // named by the camera; 0: unknown
    int channels[2];             // for TCP: RTP's and RTCP's
    struct rtp_sockets *sockets; // NULL: TCP, or multicast before the reply
};

// Writes SETUP's Transport header as a complete line; opens the ports for unicast. Returns 0 or a
// negative errno.
int rtsp_carriage_ask(struct rtsp_carriage *, enum transport, const struct rtsp_connection *,
                      char *header, size_t size);
// Applies the Transport header of the reply; NULL: there is none. Returns 0; -EXDEV: the camera
// chose TCP, but UDP was requested; another negative errno.
int rtsp_carriage_answer(struct rtsp_carriage *, const char *header, const struct sdp_media *,
                         const struct rtsp_connection *);
// Opens firewalls between the camera and us for media.
void rtsp_carriage_punch(struct rtsp_carriage *, int payload_type, uint32_t ssrc);
// Sends a compound RTCP packet, unless the connection is full. Returns 0 or the connection's error.
int rtsp_carriage_send(struct rtsp_carriage *, struct rtsp_connection *, const uint8_t *data,
                       size_t bytes);
void rtsp_carriage_close(struct rtsp_carriage *);

#endif
