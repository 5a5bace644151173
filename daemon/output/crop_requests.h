// What clients of one output found and another output of the same camera is to show from close by:
// a queue of requests, each for the wanted boxes of one picture. The loop thread adds them as
// results come; the thread of the other output (transform/crops.h) takes them. That output's ledger
// counts each request, which is to become one batch.
#ifndef FRAMED_DAEMON_OUTPUT_CROP_REQUESTS_H
#define FRAMED_DAEMON_OUTPUT_CROP_REQUESTS_H

#include "config/config.h"
#include "daemon/base/ledger.h"
#include "daemon/decode/frame.h"
#include "daemon/wire.h"

enum { CROP_REQUESTS_MAX = 64 }; // that wait

struct crop_requests;

// The picture that boxes were found in, as the output showed it that was looked at.
struct crop_parent {
    const struct frame_info *frame; // its pts_ns and epoch name the picture
    uint64_t sequence;              // of the picture in that output
    const char *region;             // of the element
};

struct crop_request {
    struct frame_info frame;
    uint64_t parent_sequence;
    char region[25];   // as in struct item
    uint64_t sequence; // counts the output's requests
    int n;
    struct crop_box {
        struct rect rect; // whole pixels of the picture, within it
        int object;       // index of the box among those that were found
    } box[CROPS_MAX];
};

// The configuration and the ledger outlive it. 0 or -ENOMEM.
int crop_requests_open(struct crop_requests **ret, const struct output_config *, struct ledger *);
// Nobody adds or takes. What is left is lost as LOSS_STOPPING. Accepts NULL.
void crop_requests_close(struct crop_requests *);

// The boxes that are wanted of `n` that were found, in pixels of the picture: those of the classes
// in the configuration that have a pixel within the picture, the best scores first. Returns how
// many there are, at most `most`.
int crop_requests_choose(struct crop_box box[CROPS_MAX], const struct crops_config *,
                         const struct framed_detection found[], int n, int width, int height);
// Loop thread: adds a request for the wanted boxes; nothing where there are none. Where too many
// requests wait, the oldest is lost, or the new one under OVERFLOW_DROP_NEWEST.
void crop_requests_add(struct crop_requests *, const struct crop_parent *,
                       const struct framed_detection found[], int n);

// Waits for a request until `until_ns` (CLOCK_MONOTONIC). 0; -ETIME: there is none, or
// crop_requests_wake was called; -ESHUTDOWN after crop_requests_stop.
int crop_requests_take(struct crop_requests *, struct crop_request *ret, int64_t until_ns);
void crop_requests_wake(struct crop_requests *); // any thread
// Ends crop_requests_take, or lets it wait again. Any thread.
void crop_requests_stop(struct crop_requests *, bool stopped);

#endif
