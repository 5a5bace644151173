// The outputs of one camera: an immutable list with a reference count.
//
// A reload gives the camera a new list, and the camera's thread switches to it between two
// pictures. Each user of a list holds a reference. After the last one is released no thread fills
// outputs from that list, and the loop thread closes it.
#ifndef FRAMED_DAEMON_OUTPUT_SUBSCRIPTIONS_H
#define FRAMED_DAEMON_OUTPUT_SUBSCRIPTIONS_H

#include "daemon/output/output.h"
#include "kernels/image.h"

struct subscription {
    struct output *output;
    struct op_params op; // makes the item from a picture; unset for copies
    // Warp: cuts its crop, or the whole picture, into tiles, each an element of its own. Size 0:
    // one element.
    struct tiling tiling;
};

enum { SUBSCRIPTIONS_MAX = CAMERA_OUTPUTS_MAX + DEMANDS_MAX };

struct subscriptions {
    _Atomic int references;
    struct event released; // for the owner: posted when another thread released the last reference
    void *owner;
    int n;          // 1 to SUBSCRIPTIONS_MAX
    int n_pictures; // outputs made from pictures as these arrive come first, those for viewers
                    // last,
    int n_pools;    // up to here: made from objects found in pictures (work/crops.c),
    int n_packets;  // up to here: copies of packets; the rest: lines of the analysis
    struct subscription list[];
};

// --- loop thread
// Subscribes to all outputs of a camera, in the order of its configuration, except that crops,
// copies and lines come last. Reuses outputs of `before` (may be NULL) that are configured alike,
// and opens the others. Shares belong to batches of the list *batches, linked by outlet.next, that
// are configured alike; new batches are added to it. `camera`, the name, outlives the outputs.
// Returns 0 or a negative errno; the caller holds the only reference.
int subscriptions_open(struct subscriptions **ret, const char *camera, const struct camera_config *,
                       const struct subscriptions *before, struct outlet **batches);
// Returns a list of the same outputs and of `more`, n outputs for viewers; the caller holds the
// only reference. NULL: out of memory.
struct subscriptions *subscriptions_with(const struct subscriptions *,
                                         const struct subscription *const more[], int n);
// Makes crops follow the results of their source outputs, in place of earlier ones, by work of that
// queue.
void subscriptions_follow(const struct subscriptions *, struct work_queue *);
// Frees the list, after its last reference was released. Calls `detached` (NULL: nothing) for each
// output that is in no list any more: no thread fills it.
void subscriptions_close(struct subscriptions *, void (*detached)(struct output *));

// --- any thread that holds a reference
struct subscriptions *subscriptions_acquire(struct subscriptions *); // returns its argument
// Returns true if that was the last reference.
bool subscriptions_release(struct subscriptions *);
bool subscriptions_have(const struct subscriptions *, const struct output *);
// Returns true if one of the outputs is a share in the batch.
bool subscriptions_fill(const struct subscriptions *, const struct outlet *batch);
struct output *subscriptions_find(const struct subscriptions *, const char *name); // or NULL
// Returns the output of that name if its configuration is the same; else NULL.
struct output *subscriptions_find_same(const struct subscriptions *, const struct output_config *);

// --- outputs that copy the camera's packets
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

// --- outputs that write lines about the camera's analysis
// Offers a picture's record to each of these outputs; NULL: the picture is damaged, or its analysis
// failed. Waits for room only in outputs with `overflow: wait`, until *stop is set. Camera thread.
void stats_outputs_offer(const struct subscriptions *, struct event_queue *,
                         const struct frame_info *, const struct scene_record *,
                         const _Atomic bool *stop);
// Counts a picture without analysis as lost: it cannot be decoded or exceeds the camera's `fps`.
// Camera thread.
void stats_outputs_lose(const struct subscriptions *, enum loss);

#endif
