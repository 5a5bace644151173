// The RTP packets (RFC 3550) of one track: which are ours, in which order, and which are missing.
// Over UDP a packet that comes before an earlier one waits for it, as long as late packets of this
// camera have needed. Pure: the caller says what time it is.
#ifndef FRAMED_DAEMON_RTSP_RTP_RECEIVER_H
#define FRAMED_DAEMON_RTSP_RTP_RECEIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/rtsp/rtp_packet.h"

struct rtp_receiver_options {
    int payload_type;
    int clock_rate; // 0: 90000
    bool ordered;   // over TCP: the network changes no order
    // The SDP has other video tracks: no other payload type is taken for ours. Otherwise 50 packets
    // of a single other type that video may have, and none of ours, are our track.
    bool other_video;
    const bool *other_codecs; // [128]: types that are not taken for ours either; read by open; NULL
    // As the Transport header says. A hint: the first packet's SSRC is ours whatever it is, but
    // changes to this one as soon as a packet has it.
    bool ssrc_hinted;
    uint32_t ssrc;
    // Packets of this SSRC came before ours could, of an older session as it seems: it is ours only
    // if no other comes for 0.5 s.
    bool ssrc_avoided;
    uint32_t avoided;
};

struct rtp_statistics { // since it was opened
    uint64_t packets;   // ours, but for late and duplicate ones
    uint64_t lost;      // as rtp_receiver_get told
    uint64_t reordered; // came behind a later one, but in time
    uint64_t late;      // came when they had been given up: they are in `lost` too
    uint64_t duplicate, foreign, restarts;
    uint32_t jitter;           // RFC 3550, in units of the clock rate
    uint32_t highest_sequence; // extended; begins anew with a restart
    uint64_t expected;         // packets, and all numbers missing between them
    uint32_t ssrc;
    bool locked;             // ssrc is known
    bool parted;             // rtp_receiver_part, and no other source has followed yet
    uint64_t source_changes; // of ssrc
};

struct rtp_receiver;

int rtp_receiver_open(struct rtp_receiver **ret, const struct rtp_receiver_options *);
void rtp_receiver_close(struct rtp_receiver *); // accepts NULL
// A datagram, or an interleaved frame, which may be RTCP or anything. All packets that are ready
// have been taken with rtp_receiver_get before, and `data` stays as it is until they have been
// taken again: it is copied only where it has to wait. 0; -EBADMSG: no packet, or none of ours
// (counted as foreign); -EBUSY: packets are ready; -ENOMEM: it counts as lost.
int rtp_receiver_put(struct rtp_receiver *, const uint8_t *data, size_t bytes, int64_t now_ns);
// The next packet in order; valid until the next call of put or get. 0 or -EAGAIN.
//
// A packet behind a hole in the numbers waits for the missing ones: for twice the longest delay of
// a late packet, 100 ms at most, 20 ms at least until there were 50 of these, then 5 ms at least,
// and not at all after 10,000 packets in order. It waits no longer once a whole picture behind the
// hole is complete. That takes a picture which begins behind the hole: a marker alone does not end
// the wait, since the last two packets of a picture may be the ones that were swapped.
int rtp_receiver_get(struct rtp_receiver *, int64_t now_ns, struct rtp_packet *ret);
// When rtp_receiver_get will give a packet though nothing else comes; INT64_MAX: not.
int64_t rtp_receiver_due_ns(const struct rtp_receiver *);
// Bytes of the connection were skipped: the next packet's lost_unknown is set if its number tells
// no loss. The packet before it may be wrong at its end.
void rtp_receiver_lose(struct rtp_receiver *);
// The source sent BYE: another one may follow at once.
void rtp_receiver_part(struct rtp_receiver *);
struct rtp_statistics rtp_receiver_statistics(const struct rtp_receiver *);

#endif
