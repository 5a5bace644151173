// How the media of a session travel: inside the RTSP connection, or over UDP, unicast or multicast.
// One thread uses a carriage.
#ifndef FRAMED_DAEMON_RTSP_RTSP_CARRIAGE_H
#define FRAMED_DAEMON_RTSP_RTSP_CARRIAGE_H

#include "daemon/rtsp/rtp_sockets.h"
#include "daemon/rtsp/rtsp_connection.h"

struct sdp_media;

struct rtsp_carriage {
    enum transport transport;
    uint32_t ssrc;               // of the camera, as it says; 0: unknown
    int channels[2];             // of TCP: RTP's and RTCP's
    struct rtp_sockets *sockets; // NULL: TCP, or multicast before the reply
};

// Writes SETUP's Transport header, a whole line; opens the ports of unicast. 0 or negative errno.
int rtsp_carriage_ask(struct rtsp_carriage *, enum transport, const struct rtsp_connection *,
                      char *header, size_t size);
// Takes in the Transport header of the reply; NULL: there is none. 0; -EXDEV: the camera wants TCP,
// but UDP was asked for; another negative errno.
int rtsp_carriage_answer(struct rtsp_carriage *, const char *header, const struct sdp_media *,
                         const struct rtsp_connection *);
// Opens the way for media through firewalls between the camera and us.
void rtsp_carriage_punch(struct rtsp_carriage *, int payload_type, uint32_t ssrc);
// Sends a compound packet of RTCP. It is left out where the connection is full: 0 or the
// connection's error.
int rtsp_carriage_send(struct rtsp_carriage *, struct rtsp_connection *, const uint8_t *data,
                       size_t bytes);
void rtsp_carriage_close(struct rtsp_carriage *);

#endif
