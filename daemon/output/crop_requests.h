// Queue of requests to crop boxes that clients of one output found, for another output of the same
// camera. A request has the selected boxes of one picture and becomes one batch. The loop thread
// adds requests as results arrive; the thread of the other output (work/crops.h) takes them.
// That output's ledger counts each request.
#ifndef FRAMED_DAEMON_OUTPUT_CROP_REQUESTS_H
#define FRAMED_DAEMON_OUTPUT_CROP_REQUESTS_H

#include "config/config.h"
#include "daemon/base/counters.h"
#include "daemon/output/results.h"

enum { CROP_REQUESTS_MAX = 64 }; // waiting

struct crop_requests;

struct crop_request {
    struct frame_info frame;
    uint64_t parent_sequence;
    char region[25];   // as in struct item
    uint64_t sequence; // counts the output's requests
    int n;
    struct crop_box {
        struct rect rect; // in whole pixels, within the picture
        int object;       // index of the box in the client's message
    } box[CROPS_MAX];
};

// Opens the queue for an output of that camera. The name, configuration and ledger outlive it.
// Returns 0 or -ENOMEM.
int crop_requests_open(struct crop_requests **ret, const char *camera, const struct output_config *,
                       struct ledger *);
// Counts waiting requests as LOSS_STOPPING. No thread may use the queue any more. Accepts NULL.
void crop_requests_close(struct crop_requests *);

// --- loop thread
// Makes requests from these results of the other output from now on, in place of earlier ones;
// NULL: none. The results outlive that.
void crop_requests_follow(struct crop_requests *, struct results *);
// Adds a request for the selected boxes, if any: boxes of the configured classes with a pixel
// within the picture, best scores first. If too many requests wait, the oldest is lost, or the new
// one under OVERFLOW_DROP_NEWEST.
void crop_requests_add(struct crop_requests *, const struct found *);

// --- the output's thread
// Waits for a request until `until_ns` (CLOCK_MONOTONIC). Returns 0; -ETIME if there is none, or
// after crop_requests_wake; -ESHUTDOWN after crop_requests_stop.
int crop_requests_take(struct crop_requests *, struct crop_request *ret, int64_t until_ns);
// Counts waiting requests as LOSS_LATE and waits until the output's thread has finished the request
// that it took. Any other thread.
void crop_requests_drain(struct crop_requests *);
void crop_requests_wake(struct crop_requests *); // any thread
// Makes crop_requests_take return, or lets it wait again. Any thread.
void crop_requests_stop(struct crop_requests *, bool stopped);

#endif
