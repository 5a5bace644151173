// Receives the RTP packets (RFC 3550) of one track: selects ours, orders them and counts the
// missing ones. Over UDP a packet that overtakes an earlier one waits for it, for 20 ms. Pure: the
// caller passes the time.
#ifndef FRAMED_DAEMON_RTSP_RTP_RECEIVER_H
#define FRAMED_DAEMON_RTSP_RTP_RECEIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct picture_end_verdict;
struct sdp_media;

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

struct rtsp_track_options {
    const struct sdp_media *media;       // read during open
    struct picture_end_verdict *verdict; // outlives the track
    bool ordered;                        // over TCP: the network does not reorder
    // The SDP has other video tracks: no other payload type becomes ours. Otherwise 50 packets in a
    // row of one other type that may be video, and none of ours, make that type ours.
    bool other_video;
    const bool
        *other_codecs; // [128]: types that never become ours; outlives the track; may be NULL
    // Hint from the Transport header; 0: none. The first packet's SSRC is ours in any case, but
    // ours changes to this one as soon as it occurs.
    uint32_t ssrc;
    // Packets of the SSRC `avoided` came before ours could, probably from an older session: it
    // becomes ours only if no other arrives for 0.5 s.
    bool avoids;
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
    bool parted;             // it sent BYE, and no other source has followed
    uint64_t source_changes; // of ssrc
};

struct rtp_held { // a waiting packet
    struct rtp_held *next;
    int64_t number;
    struct rtp_packet packet;
    size_t bytes;
    uint8_t data[]; // a copy of the datagram
};

enum { RTP_WINDOW = 1024 }; // numbers below the highest that may still arrive late

struct rtp_receiver {
    // The owner reads these, and sets `parted` at the source's BYE: another one may follow at once.
    struct rtp_statistics statistics;
    // Set by the owner: bytes of the connection were skipped. Sets the next packet's lost_unknown
    // if its number shows no loss. The end of the packet before it may be wrong.
    bool lose;

    // Private.
    struct rtsp_track_options options;
    int payload_type, clock_rate;
    // Packets have 64-bit numbers, which continue when a sender restarts its sequence. `offset` is
    // their distance to the sender's extended sequence numbers.
    int64_t first, next, highest; // of this numbering; next to return; of all received
    int64_t offset;
    bool begun; // these are valid
    uint32_t highest_timestamp;
    int64_t highest_ns;
    int64_t restart;       // first number after the sender's restart; 0: none
    bool seen[RTP_WINDOW]; // of the last numbers
    // Packets to return, and packets that may begin a new numbering: both sorted by number.
    struct rtp_held *waiting, *strays;
    int n_strays, strays_in_row;
    size_t waiting_bytes;
    struct rtp_held *given; // the last packet returned

    // The source: cameras send other tracks on its channel, continue older sessions, and change the
    // SSRC in the middle of a stream.
    bool mixes; // the camera sends two streams at once: no SSRC continues another
    uint16_t first_sequence, left_sequence; // of our SSRC's first packet; of the last SSRC's newest
    uint32_t first_timestamp, left_ssrc;
    int64_t left_until_ns;      // a newer packet of `left_ssrc` before then: it is still sending
    bool left_by_numbers;       // our numbers continue those of `left_ssrc`
    int64_t avoided_ns;         // when the first packet of the SSRC to avoid arrived
    int64_t heard_ns, pause_ns; // of our SSRC: last packet, longest pause
    int other_type, others;     // another payload type, and its packets in a row

    uint32_t transit, jitter16; // the last packet's; 16 times the jitter
};

void rtp_receiver_open(struct rtp_receiver *, const struct rtsp_track_options *);
void rtp_receiver_close(struct rtp_receiver *); // frees the packets; a zeroed one is closed
// Takes a datagram or an interleaved frame, which may be RTCP or anything else. The caller has
// taken all packets that are due. Returns 0; -EBADMSG: no packet, or not ours (counted as foreign);
// -ENOMEM: the packet counts as lost.
int rtp_receiver_put(struct rtp_receiver *, const uint8_t *data, size_t bytes, int64_t now_ns);
// Returns the next packet in order, valid until the next call of get. 0 or -EAGAIN.
int rtp_receiver_get(struct rtp_receiver *, int64_t now_ns, struct rtp_packet *ret);
// Returns when rtp_receiver_get has a packet without further input; INT64_MAX: never.
int64_t rtp_receiver_due_ns(const struct rtp_receiver *);

#endif
