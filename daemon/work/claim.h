// Claims the results of a frame: decides whether an output takes the frame, and claims free items
// of the output's pool. Camera's thread only.
#ifndef FRAMED_DAEMON_WORK_CLAIM_H
#define FRAMED_DAEMON_WORK_CLAIM_H

#include "daemon/base/stage_watch.h"
#include "daemon/codec/frame.h"
#include "daemon/work/geometry.h"

// One frame, for which each output claims a result in turn.
struct claim {
    struct frame *frame;    // shared with a batch that parks it
    int rate_num, rate_den; // nominal frames per second of the camera; 0/0: unknown
    int64_t wait_until_ns;  // CLOCK_MONOTONIC: until then waits for room under any `overflow`
    int64_t opening_ns;     // increased by the time spent opening a pool's memory
    const _Atomic bool *interrupted; // ends every wait
    const _Atomic bool *stop;        // set: `interrupted` means stopping; else the device failed
    struct stage_watch *stages;      // no limit while waiting for clients
};

// The n elements of a picture for one output.
struct elements {
    const struct element *list;
    int n;
};

// Claims items for the elements and describes them in *ret. Returns the index of the first item, or
// -1: the output has lost the frame, with the reason counted, or a batch has parked it. No
// elements: they cannot be made from this source. Waits under `overflow: wait`, and until
// claim->wait_until_ns.
int claim_frame(const struct subscription *, const struct elements *, struct claim *,
                struct result **ret);
// The same for an output for viewers: claims its one item if it is due. Never waits. Returns 0;
// -EAGAIN: not now; or another negative errno. A lasting reason is in demand->refused, too.
// `pictures`: number of the camera's pictures before this one.
int claim_demanded(const struct subscription *, const struct elements *, struct claim *,
                   uint64_t pictures, struct result **ret);
// Describes the elements' items from `first` on.
void claim_describe(struct result *, int first, const struct elements *, const struct output *,
                    const struct frame_info *, uint64_t sequence, uint64_t ordinal);
// Returns the loss for a failed pool claim. The pool cannot count it, as no result exists.
// `stopping`: -ECANCELED means stopping; else the device has failed.
enum loss claim_loss(int rc, bool stopping);
// Returns the format of results whose elements are made by `op`, at num / den pictures a second
// (0/0: unknown), with the data at `data`.
struct result_format claim_format(const struct op *, const struct output *, enum field_order,
                                  int num, int den, void *data);
// Counts a frame that no output received as lost by each of them.
void claim_lost(const struct subscriptions *, enum loss reason);

#endif
