// Claims a result of an output for a frame: whether the output wants the frame, and free items of
// its pool. The camera's thread calls everything here.
#ifndef FRAMED_DAEMON_TRANSFORM_CLAIM_H
#define FRAMED_DAEMON_TRANSFORM_CLAIM_H

#include "daemon/base/stage_watch.h"
#include "daemon/decode/frame.h"
#include "daemon/transform/geometry.h"

// One frame, for which each output's result is claimed in turn.
struct claim {
    struct frame *frame;    // shared with a batch where it has to wait for that
    int rate_num, rate_den; // nominal frames per second of the camera; 0/0: unknown
    int64_t wait_until_ns;  // CLOCK_MONOTONIC: until then waits for room under any `overflow`
    int64_t opening_ns;     // the time that opening a pool's memory took is added here
    const _Atomic bool *interrupted; // ends every wait...
    const _Atomic bool *stop;        // ...because of this; else the device has failed
    struct stage_watch *stages;      // without a limit while clients are waited for
};

// The n elements of a picture that an output gets.
struct elements {
    const struct element *list;
    int n;
};

// The first of the elements' items, described, in *ret. Returns the index of that item; -1: the
// output has lost the frame, with the reason counted, or a batch has parked it. Where there are no
// elements, they cannot be made from this source. Waits with `overflow: wait`, and before
// claim->wait_until_ns.
int claim_frame(const struct subscription *, const struct elements *, struct claim *,
                struct result **ret);
// Describes the elements' items from `first` on.
void claim_describe(struct result *, int first, const struct elements *, const struct output *,
                    const struct frame_info *, uint64_t sequence, uint64_t ordinal);
// What a claim of a pool that failed loses the picture as; no result exists, so that the pool
// cannot count it. `stopping`: -ECANCELED is for that reason, else the device has failed.
enum loss claim_loss(int rc, bool stopping);
// Of results whose elements `op` makes, of num / den pictures a second (0/0: unknown). With the
// result's data at `data`.
struct result_format claim_format(const struct op *, const struct output *, enum field_order,
                                  int num, int den, void *data);
// A frame that no output gets to see counts for each of them.
void claim_lost(const struct subscriptions *, enum loss reason);

#endif
