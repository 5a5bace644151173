// Headers before a sink's payloads: a stream's own and each frame's.
#ifndef FRAMED_DAEMON_OUTPUT_PROTOCOL_H
#define FRAMED_DAEMON_OUTPUT_PROTOCOL_H

#include "config/config.h"
#include "daemon/output/pool.h"

struct framed_batch;

// A result is a single frame or a batch (see closed_by). All results here are ready, with at least
// one filled item.

// A consumer's position in an output's stream. Zeroed before its first result.
struct stream_position {
    bool begun;        // it got a result before, and the rest is valid:
    bool new_epoch;    // the last frame is its first of the epoch; not for batches
    uint32_t epoch;    // of the last frame
    uint64_t expected; // ordinal after the last frame, or number after the last batch
    uint64_t lost;     // frames, or batches, between its first one and the last
};

// Advances to a result. Counts losses from the consumer's first result on, not earlier ones.
void stream_advance(struct stream_position *, const struct result *);

// Returns the first filled item, which gives the result its time.
const struct item *protocol_first_item(const struct result *);
// Returns the bytes of payload for consumers: with `tail: cut` only up to a batch's last filled
// item.
size_t protocol_payload_size(const struct output_config *, const struct result *);

// Returns the most bytes that protocol_header writes for this or another result of the pool.
size_t protocol_header_max(const struct result *);
// Writes the header of the result's payload for a consumer at this position, in the output's
// protocol; with `first`, after the stream's own header (y4m). Returns the bytes written.
size_t protocol_header(const struct output_config *, const struct result *,
                       const struct stream_position *, bool first, char *to);

// --- the two parts of protocol_header for a batch in PROTOCOL_FRAMED
// Leaves `slot` and `ticket` 0.
void protocol_batch(struct framed_batch *to, const struct output_config *, const struct result *,
                    const struct stream_position *);
// Writes the headers of its elements, each a struct framed_element_header, the same for all
// consumers. Returns their bytes.
size_t protocol_element_headers(void *to, const struct output_config *, const struct result *);

// Returns true if a stream that began with format `before` may continue with `now`: y4m and raw
// cannot change their geometry, nor y4m its interlacing.
bool protocol_continues(enum protocol, const struct result_format *before,
                        const struct result_format *now);

#endif
