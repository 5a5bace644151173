// What stands before the payloads of a sink: the bytes of a stream's and of each frame's header.
#ifndef FRAMED_DAEMON_OUTPUT_PROTOCOL_H
#define FRAMED_DAEMON_OUTPUT_PROTOCOL_H

#include "config/config.h"
#include "daemon/output/pool.h"

struct framed_batch;

// A result is a single frame or a batch (closed_by says which); all here are of results that are
// ready, so that at least one of their items is filled.

// How far one consumer has come in an output's stream. Zeroed before its first result.
struct stream_position {
    bool begun;        // it got a result before, and the rest holds:
    bool new_epoch;    // the last frame is the first that it got of its epoch; not of batches
    uint32_t epoch;    // of the last frame
    uint64_t expected; // ordinal behind the last frame, or number behind the last batch
    uint64_t lost;     // frames, or batches, between its first one and the last
};

// The consumer gets this result. Losses count from its first one on: what was lost before was not
// lost to this consumer.
void stream_advance(struct stream_position *, const struct result *);

// The first item that is filled: it stands for the result where that has to have a time.
const struct item *protocol_first_item(const struct result *);
// The bytes of the result's data that consumers get: of a batch with `tail: cut` only those up to
// the last item that is filled.
size_t protocol_payload_size(const struct output_config *, const struct result *);

// Most bytes that protocol_header writes for the result, or for another of its pool.
size_t protocol_header_max(const struct result *);
// Writes what precedes the result's payload for a consumer at this position, by the output's
// protocol; with `first`, the stream's own header before it (y4m). Returns the bytes written.
size_t protocol_header(const struct output_config *, const struct result *,
                       const struct stream_position *, bool first, char *to);

// --- of protocol_header of a batch by PROTOCOL_FRAMED the two parts:
// `slot` and `ticket` are 0.
void protocol_batch(struct framed_batch *to, const struct output_config *, const struct result *,
                    const struct stream_position *);
// The headers of its elements, struct framed_element_header each, which are the same for all
// consumers. Returns their bytes.
size_t protocol_element_headers(void *to, const struct output_config *, const struct result *);

// Whether a stream that began with a result of format `before` may go on with `now`: y4m and raw
// cannot change their geometry, nor y4m its interlacing.
bool protocol_continues(enum protocol, const struct result_format *before,
                        const struct result_format *now);

#endif
