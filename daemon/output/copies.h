// The outputs of a camera that copy its packets.
#ifndef FRAMED_DAEMON_OUTPUT_COPIES_H
#define FRAMED_DAEMON_OUTPUT_COPIES_H

#include "daemon/output/subscriptions.h"

// Adds the packet, of such a stream, to the queue of each copy. Waits for room only in queues with
// `overflow: wait`, announces that to `stages`, and ends the wait when *stop is set. Camera thread.
void copies_packet(const struct subscriptions *, struct event_queue *, const struct packet *,
                   const struct AVCodecParameters *stream, const _Atomic bool *stop,
                   struct stage_watch *stages);

// Makes each copy with `before` write until CLOCK_MONOTONIC is at `until_ns`. Returns how many do.
// Loop thread.
int copies_request(const struct subscriptions *, int64_t until_ns);
// Whether any output has `before`. Loop thread.
bool copies_take_requests(const struct subscriptions *);

#endif
