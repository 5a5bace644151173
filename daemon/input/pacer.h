// Delays the packets of a file until a camera would have sent them. One thread uses a pacer; ready
// when zeroed.
#ifndef FRAMED_DAEMON_INPUT_PACER_H
#define FRAMED_DAEMON_INPUT_PACER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

static const int64_t PACER_GAP_NS = 10 * INT64_C(1000000000); // the longest sleep

struct pacer {
    int64_t origin_ns; // CLOCK_MONOTONIC; 0: the next packet is due at once and sets it
    int64_t origin_ts, last_ts;
};

// Sleeps until the packet of decoding time `ts` (ns) is due. After a long delay it continues from
// there without catching up: a camera's packets would have been lost. Returns 0, or -ECANCELED soon
// after *stop.
int pacer_wait(struct pacer *, int64_t ts, const _Atomic bool *stop);

#endif
