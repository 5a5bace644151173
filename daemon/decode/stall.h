// Tells a live stream that cannot be decoded, packets of which come and hardly a picture, from one
// that only waits for a keyframe. One thread uses it; zeroed it is ready.
#ifndef FRAMED_DAEMON_DECODE_STALL_H
#define FRAMED_DAEMON_DECODE_STALL_H

#include <stdbool.h>
#include <stdint.h>

struct decode_stall {
    int64_t pictures;    // decoded by the last packet
    uint32_t recent;     // of the last packets a bit each: whether a picture was decoded
    int64_t begun_ns;    // when the first packet came since pictures do not; 0: none has
    int64_t from_ns;     // begun_ns, or when a keyframe came behind it
    int packets;         // from then on
    bool keyed;          // from_ns is of a keyframe
    int64_t key_ns;      // when the connection's last keyframe came, or at first its first packet
    int64_t distance_ns; // the longest way to a keyframe so far, of all connections
    int64_t dry_ns;      // from begun_ns to the last packet
    int vain;            // connections in a row that ended in a drought
};

void decode_stall_connect(struct decode_stall *); // another connection begins
// For each packet in turn: how many pictures were decoded ahead of it, clean or not, and when it
// came on CLOCK_MONOTONIC. `patience_ns` is what a decoder may take over what it can decode.
// Returns whether no picture came for too long.
bool decode_stall_packet(struct decode_stall *, int64_t pictures, int64_t now_ns, bool keyframe,
                         int64_t patience_ns);

#endif
