// An RTP packet (RFC 3550) and its parser. Pure.
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
    // Header extension; NULL: none.
    uint16_t extension_profile;
    const uint8_t *extension;
    size_t extension_bytes;
    int64_t received_ns; // CLOCK_MONOTONIC
    // Set by rtp_receiver_get:
    uint32_t lost;     // packets missing right before this one
    bool lost_unknown; // an unknown number is missing, perhaps 0; not counted in `lost`
    bool restarted;    // the sender restarted: new numbers, new timestamps
};

// Returns 0 or -EBADMSG. Pointers in *ret are into `data`. Ignores impossible padding.
int rtp_parse(struct rtp_packet *ret, const uint8_t *data, size_t bytes);
// Recognises RTCP by its packet type, on any channel.
bool rtp_is_rtcp(const uint8_t *data, size_t bytes);

#endif
