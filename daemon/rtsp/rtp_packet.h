// An RTP packet (RFC 3550) as it comes from the network. Pure.
#ifndef FRAMED_DAEMON_RTSP_RTP_PACKET_H
#define FRAMED_DAEMON_RTSP_RTP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rtp_packet {
    const uint8_t *payload;
    size_t bytes; // of the payload, without padding
    uint32_t timestamp, ssrc;
    uint16_t sequence;
    uint8_t payload_type;
    bool marker;
    // Of the header extension; NULL: none.
    uint16_t extension_profile;
    const uint8_t *extension;
    size_t extension_bytes;
    int64_t received_ns; // CLOCK_MONOTONIC
    // Set by rtp_receiver_get:
    uint32_t lost;     // packets missing right before this one
    bool lost_unknown; // it is not known how many are missing, if any: they are not in `lost`
    bool restarted;    // the sender began anew: other numbers, other times
};

// 0 or -EBADMSG. Pointers in *ret are into `data`. Padding that cannot be is none.
int rtp_parse(struct rtp_packet *ret, const uint8_t *data, size_t bytes);
// Whatever the channel: RTCP is told by its packet type.
bool rtp_is_rtcp(const uint8_t *data, size_t bytes);

#endif
