// The RTP packets (RFC 3550) of one track: which are ours, in which order, and which are missing.
// Over UDP a packet that comes before an earlier one waits for it, as long as late packets of this
// camera have needed. Pure: the caller says what time it is.
#ifndef FRAMED_DAEMON_INPUT_RTP_RECEIVER_H
#define FRAMED_DAEMON_INPUT_RTP_RECEIVER_H

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
    bool lost_unknown; // so many are missing that their number is not known
    bool restarted;    // the sender began anew: other numbers, other times
};

int rtp_parse(struct rtp_packet *ret, const uint8_t *data, size_t bytes); // 0 or -EBADMSG
bool rtp_is_rtcp(const uint8_t *data, size_t bytes);

struct rtp_receiver_options {
    int payload_type;
    int clock_rate;
    bool ordered; // over TCP: the network changes no order
};

struct rtp_statistics { // since it was opened
    uint64_t packets, lost, late, duplicate, foreign, restarts;
    uint32_t jitter;           // RFC 3550, in units of the clock rate
    uint32_t highest_sequence; // extended
    uint64_t expected;
    uint32_t ssrc;
    bool locked; // ssrc is known
};

struct rtp_receiver;

int rtp_receiver_open(struct rtp_receiver **ret, const struct rtp_receiver_options *);
void rtp_receiver_close(struct rtp_receiver *); // accepts NULL
// A datagram, or an interleaved frame. It is copied where it has to wait. 0; -EBADMSG: no packet,
// or none of ours (counted); -ENOMEM.
int rtp_receiver_put(struct rtp_receiver *, const uint8_t *data, size_t bytes, int64_t now_ns);
// The next packet in order; valid until the next call of put or get. 0 or -EAGAIN.
int rtp_receiver_get(struct rtp_receiver *, int64_t now_ns, struct rtp_packet *ret);
// When rtp_receiver_get will give a packet though nothing else comes; INT64_MAX: not.
int64_t rtp_receiver_due_ns(const struct rtp_receiver *);
// The picture behind a hole is complete (its marker has come): waiting ends.
void rtp_receiver_lose(struct rtp_receiver *); // bytes of the connection are missing: count a loss
void rtp_receiver_bye(struct rtp_receiver *);  // ours said goodbye: the next SSRC is ours
struct rtp_statistics rtp_receiver_statistics(const struct rtp_receiver *);

#endif
