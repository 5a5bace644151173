// RTP payloads of access units, packetised once in advance: H.264 by RFC 6184, H.265 by RFC 7798,
// single NAL units and fragments. Read-only afterwards, from any thread.
#ifndef FRAMED_TESTS_BENCH_RTP_PACKETS_H
#define FRAMED_TESTS_BENCH_RTP_PACKETS_H

#include "tests/bench/clip_units.h"

enum { RTP_PAYLOAD_MAX = 1400, RTP_HEADER = 12, RTP_FRAGMENT_HEAD = 3 };

struct rtp_payload {
    uint8_t head[RTP_FRAGMENT_HEAD]; // of a fragment
    uint8_t head_bytes;              // 0: a whole NAL unit
    uint16_t bytes;                  // of data
    const uint8_t *data;             // points into the clip
};

struct rtp_picture {
    struct rtp_payload *payloads; // n; the last one carries the marker
    int n;
};

struct rtp_clip {
    const struct clip_units *clip;
    struct rtp_picture *pictures; // one per unit
};

int rtp_clip_open(struct rtp_clip *, const struct clip_units *); // 0 or -ENOMEM
void rtp_clip_close(struct rtp_clip *);                          // accepts a zeroed one
// Writes the RTP packet. Returns its size, at most RTP_HEADER + RTP_PAYLOAD_MAX.
struct rtp_numbers {
    uint16_t sequence;
    uint32_t timestamp, ssrc;
    bool marker;
};
size_t rtp_packet_write(uint8_t *to, const struct rtp_payload *, const struct rtp_numbers *);
void write_be16(uint8_t *to, uint32_t value);
void write_be32(uint8_t *to, uint32_t value);

#endif
