// Detects that a live stream cannot be decoded: packets come, but hardly a picture. A decoder that
// only waits for a keyframe has not stalled; one that fails at packet after packet of a stream that
// lacks nothing has stalled within a second, whatever keyframes are due. One thread uses it; zeroed
// it is ready.
#ifndef FRAMED_DAEMON_DECODE_STALL_H
#define FRAMED_DAEMON_DECODE_STALL_H

#include <stdbool.h>
#include <stdint.h>

struct decode_stall {
    int64_t pictures;    // decoded by the last packet
    int64_t failures;    // by the last packet
    uint32_t recent;     // of the last packets a bit each: whether a picture was decoded
    int64_t begun_ns;    // when the first packet without a picture came; 0: pictures come
    int64_t from_ns;     // begun_ns, or when a keyframe came behind it
    int packets;         // since from_ns
    bool keyed;          // from_ns is of a keyframe
    int64_t key_ns;      // when the connection's last keyframe came, or at first its first packet
    int64_t distance_ns; // the longest distance of keyframes so far, in all connections
    int failed;          // packets, but for some with each picture that came between them
    int64_t failed_ns;   // when the first of them was known
    int64_t lasted_ns;   // how long no picture came, by the last packet
    int stalls;          // connections in a row that ended in a stall
};

struct decode_signs {    // of a packet
    int64_t pictures;    // decoded before it, clean or not
    int64_t failures;    // decoder_failures before it
    int64_t now_ns;      // CLOCK_MONOTONIC: it came
    int64_t patience_ns; // how long a decoder that works may take
    bool keyframe;
};

void decode_stall_connect(struct decode_stall *); // another connection begins
// To be called for each packet, ahead of decoding it. Returns whether no picture came for too long.
bool decode_stall_packet(struct decode_stall *, const struct decode_signs *);

#endif
