// Claims a result of an output for a frame: whether the output wants the frame, and a free result
// of its pool. The camera's thread calls everything here.
#ifndef FRAMED_DAEMON_TRANSFORM_CLAIM_H
#define FRAMED_DAEMON_TRANSFORM_CLAIM_H

#include "daemon/base/stage_watch.h"
#include "daemon/decode/frame.h"
#include "daemon/output/subscriptions.h"

// One frame, for which each output's result is claimed in turn.
struct claim {
    const struct frame_info *info;
    int rate_num, rate_den; // nominal frames per second of the camera; 0/0: unknown
    int64_t wait_until_ns;  // CLOCK_MONOTONIC: until then waits for room under any `overflow`
    int64_t opening_ns;     // the time that opening a pool's memory took is added here
    const _Atomic bool *interrupted; // ends every wait...
    const _Atomic bool *stop;        // ...because of this; else the device has failed
    struct stage_watch *stages;      // without a limit while clients are waited for
};

// The claimed result, described; NULL: the output has lost the frame, and the reason is counted.
// `op` makes the result; NULL: it cannot be made from this source. Waits with `overflow: wait`, and
// before claim->wait_until_ns.
struct result *claim_frame(const struct subscription *, const struct op *op, struct claim *);
// A frame that no output gets to see counts for each of them.
void claim_lost(const struct subscriptions *, enum loss reason);

#endif
