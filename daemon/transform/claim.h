// What one output makes of a frame that it is offered: whether it wants it, and a slot for the
// result. The camera's thread calls everything here.
#ifndef FRAMED_DAEMON_TRANSFORM_CLAIM_H
#define FRAMED_DAEMON_TRANSFORM_CLAIM_H

#include "daemon/base/stage_watch.h"
#include "daemon/decode/frame.h"
#include "daemon/output/subscriptions.h"

struct offer {
    const struct frame_info *info;
    int rate_num, rate_den; // nominal frames per second that are offered; 0/0: unknown
    int64_t wait_until_ns;  // CLOCK_MONOTONIC: until then waits for room under any `overflow`
    int64_t opening_ns;     // what slots took to be opened is added here
    const _Atomic bool *interrupted; // ends every wait...
    const _Atomic bool *stop;        // ...because of this; else the device has failed
    struct stage_watch *stages;      // without a limit while clients are waited for
};

// The slot for the result, described; NULL: the output has lost the frame, with the reason counted.
// `op` makes the result; NULL: it cannot be made from this source. Waits with `overflow: wait`, and
// before offer->wait_until_ns.
struct result *claim_frame(const struct subscription *, const struct op *op, struct offer *);
// A frame that no output gets to see counts for each of them.
void claim_lost(const struct subscriptions *, enum loss reason);

#endif
