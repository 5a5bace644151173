// What stands before the payloads of a sink: the bytes of a stream's and of each frame's header.
#ifndef FRAMED_DAEMON_OUTPUT_PROTOCOL_H
#define FRAMED_DAEMON_OUTPUT_PROTOCOL_H

#include "config/config.h"
#include "daemon/output/pool.h"

enum { PROTOCOL_HEADER_MAX = 512 }; // bytes of a stream header and a frame header together

// How far one consumer has come in an output's stream. Zeroed before its first frame.
struct stream_position {
    bool begun;        // it got a frame before, and the rest holds:
    bool new_epoch;    // the last frame is the first that it got of its epoch
    uint32_t epoch;    // of the last frame
    uint64_t expected; // ordinal behind the last frame
    uint64_t lost;     // frames between its first one and the last
};

// The consumer gets this frame. Losses count from its first frame on: what was lost before was not
// lost to this consumer.
void stream_advance(struct stream_position *, const struct item *);

// Writes the header that precedes the result's payload for a consumer at this position; with
// `first`, the stream's own header before it (y4m). Returns the bytes written, at most
// PROTOCOL_HEADER_MAX.
size_t protocol_header(enum protocol, const struct result *, const char *output,
                       const struct stream_position *, bool first, char to[PROTOCOL_HEADER_MAX]);

// Whether a stream that began with a result of format `before` may go on with `now`: y4m and raw
// cannot change their geometry, nor y4m its interlacing.
bool protocol_continues(enum protocol, const struct result_format *before,
                        const struct result_format *now);

#endif
