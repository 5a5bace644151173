// The outputs that one camera delivers to: an immutable list with a reference count.
//
// A reload gives the camera a new list, and the camera's thread goes over to it between two
// pictures. Whoever works by a list holds a reference. Once the last one is released nobody fills
// the outputs by that list any more, and the loop thread closes it.
#ifndef FRAMED_DAEMON_OUTPUT_SUBSCRIPTIONS_H
#define FRAMED_DAEMON_OUTPUT_SUBSCRIPTIONS_H

#include "daemon/output/output.h"
#include "kernels/tiles.h"

struct subscription {
    struct output *output;
    struct op_params op; // makes the item from a picture; of a copy nothing
    // Of a warp: into what its crop, or the whole picture, is cut, each tile an element of its own.
    // Size 0: one element.
    struct tiling tiling;
};

struct subscriptions {
    _Atomic int references;
    struct event released; // for the owner: posted where another thread released the last reference
    void *owner;
    int n;          // 1 to CAMERA_OUTPUTS_MAX
    int n_pictures; // the first of them are made from pictures as these come,
    int n_pools;    // those up to here from what is found in pictures (transform/crops.h),
    int n_packets;  // those up to here copy packets, and the rest are lines of the analysis
    struct subscription list[];
};

// --- loop thread
// Subscribes to all outputs of a camera, in the order of its configuration but for crops,
// copies and lines, which come last: to those of `before` (which may be NULL) that are configured
// alike, and to new ones. Shares in batches are of those batches in the list *batches, by
// output.next, that are configured alike, and new batches are added to it. `camera`, its name,
// outlives the outputs. 0 or negative errno; the caller holds the only reference.
int subscriptions_open(struct subscriptions **ret, const char *camera, const struct camera_config *,
                       const struct subscriptions *before, struct output **batches);
// Crops get the results of the outputs that they are of, in place of those before.
void subscriptions_follow(const struct subscriptions *);
// After the last reference was released. Calls `detached` (NULL: nothing) for each output that is
// in no list any more: no thread fills it.
void subscriptions_close(struct subscriptions *, void (*detached)(struct output *));

// --- any thread that holds a reference
struct subscriptions *subscriptions_acquire(struct subscriptions *); // returns its argument
// True: that was the last reference.
bool subscriptions_release(struct subscriptions *);
bool subscriptions_have(const struct subscriptions *, const struct output *);
// Whether one of the outputs is a share in the batch, given by its own output.
bool subscriptions_fill(const struct subscriptions *, const struct output *batch);
struct output *subscriptions_find(const struct subscriptions *, const char *name); // or NULL
// The output of that name, if it is configured exactly so; else NULL.
struct output *subscriptions_find_same(const struct subscriptions *, const struct output_config *);

#endif
