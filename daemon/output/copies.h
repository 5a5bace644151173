// Outputs that copy a camera's packets.
#ifndef FRAMED_DAEMON_OUTPUT_COPIES_H
#define FRAMED_DAEMON_OUTPUT_COPIES_H

#include "daemon/output/subscriptions.h"

// Adds the packet, of stream `stream`, to each copy's queue. Waits for room only under `overflow:
// wait`, announces that to `stages`, and stops waiting when *stop is set. Camera thread.
void copies_packet(const struct subscriptions *, struct event_queue *, const struct packet *,
                   const struct AVCodecParameters *stream, const _Atomic bool *stop,
                   struct stage_watch *stages);

// Makes each copy with `before` write until `until_ns` (CLOCK_MONOTONIC). Returns the number of
// copies that do. Loop thread.
int copies_request(const struct subscriptions *, int64_t until_ns);
// Returns true if any copy has `before`. Loop thread.
bool copies_take_requests(const struct subscriptions *);

#endif
