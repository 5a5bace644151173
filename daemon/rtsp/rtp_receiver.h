// Receives the RTP packets (RFC 3550) of one track: selects ours, orders them and counts the
// missing ones. Over UDP a packet that overtakes an earlier one waits for it, for 20 ms at first;
// each packet that comes too late doubles that, up to 100 ms; after 10,000 packets in order none
// waits until one is late. Pure: the caller passes the time.
#ifndef FRAMED_DAEMON_RTSP_RTP_RECEIVER_H
#define FRAMED_DAEMON_RTSP_RTP_RECEIVER_H

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

struct rtp_receiver_options {
    int payload_type;
    int clock_rate; // 0: 90000
    bool ordered;   // over TCP: the network does not reorder
    // The SDP has other video tracks: no other payload type becomes ours. Otherwise 50 packets in a
    // row of one other type that may be video, and none of ours, make that type ours.
    bool other_video;
    const bool *other_codecs; // [128]: types that never become ours; read during open; may be NULL
    // Hint from the Transport header: the first packet's SSRC is ours in any case, but ours changes
    // to this one as soon as it occurs.
    bool ssrc_hinted;
    uint32_t ssrc;
    // Packets of this SSRC came before ours could, probably from an older session: it becomes ours
    // only if no other arrives for 0.5 s.
    bool ssrc_avoided;
    uint32_t avoided;
};

struct rtp_statistics { // since open
    uint64_t packets;   // ours, without late and duplicate ones
    uint64_t lost;      // sum of struct rtp_packet's `lost`
    uint64_t reordered; // arrived after a later one, but in time
    uint64_t late;      // arrived after they were given up; counted in `lost` too
    uint64_t duplicate, foreign, restarts;
    uint32_t jitter;           // RFC 3550, in units of the clock rate
    uint32_t highest_sequence; // extended; restarts with the sender
    uint64_t expected;         // packets, and all missing numbers between them
    uint32_t ssrc;
    bool locked;             // ssrc is known
    bool parted;             // rtp_receiver_part was called, and no other source has followed
    uint64_t source_changes; // of ssrc
};

struct rtp_receiver;

int rtp_receiver_open(struct rtp_receiver **ret, const struct rtp_receiver_options *);
void rtp_receiver_close(struct rtp_receiver *); // accepts NULL
// Takes a datagram or an interleaved frame, which may be RTCP or anything else. Returns 0;
// -EBADMSG: no packet, or not ours (counted as foreign); -EBUSY: packets are ready, and the caller
// takes them first; -ENOMEM: the packet counts as lost.
int rtp_receiver_put(struct rtp_receiver *, const uint8_t *data, size_t bytes, int64_t now_ns);
// Returns the next packet in order, valid until the next call of put or get. 0 or -EAGAIN.
int rtp_receiver_get(struct rtp_receiver *, int64_t now_ns, struct rtp_packet *ret);
// Returns when rtp_receiver_get has a packet without further input; INT64_MAX: never.
int64_t rtp_receiver_due_ns(const struct rtp_receiver *);
// Reports skipped bytes of the connection: sets the next packet's lost_unknown if its number shows
// no loss. The end of the packet before it may be wrong.
void rtp_receiver_lose(struct rtp_receiver *);
// Reports the source's BYE: another source may follow at once.
void rtp_receiver_part(struct rtp_receiver *);
const struct rtp_statistics *rtp_receiver_statistics(const struct rtp_receiver *);

#endif
