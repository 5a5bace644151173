// Detects that a live stream cannot be decoded: packets come, but hardly a picture. A decoder that
// waits for a keyframe has not stalled; one that fails at packet after packet of a complete stream
// has stalled within a second, whatever keyframes are due. One thread uses it; zeroed, it is ready.
#ifndef FRAMED_DAEMON_CODEC_STALL_H
#define FRAMED_DAEMON_CODEC_STALL_H

#include "daemon/source/demux.h"

struct decode_stall {
    int64_t pictures;    // decoded up to the last packet
    int64_t failures;    // up to the last packet
    uint32_t recent;     // one bit for each of the last packets: a picture was decoded
    int64_t begun_ns;    // arrival of the first packet without a picture; 0: pictures come
    int64_t from_ns;     // begun_ns, or the arrival of a keyframe after it
    int packets;         // since from_ns
    bool keyed;          // from_ns is a keyframe's
    int64_t key_ns;      // arrival of the connection's last keyframe, at first of its first packet
    int64_t distance_ns; // the longest distance of keyframes so far, over all connections
    int failed;          // failed packets, minus some for each picture between them
    int64_t failed_ns;   // when the first of them was reported
    int64_t lasted_ns;   // time without a picture, up to the last packet
    int stalls;          // connections in a row that ended in a stall
};

void decode_stall_connect(struct decode_stall *); // call when another connection begins
// Call for each packet before decoding it, with decoder_pictures and decoder_failures before it.
// `patience_ns`: how long a working decoder may take. Returns true if no picture came for too long.
bool decode_stall_packet(struct decode_stall *, const struct packet *, int64_t pictures,
                         int64_t failures, int64_t patience_ns);

#endif
