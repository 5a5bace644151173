// What clients of one output found and another output of the same camera is to show from close by:
// a queue of requests, each for the wanted boxes of one picture. The loop thread adds them as
// results come; the thread of the other output (transform/crops.h) takes them. That output's ledger
// counts each request, which is to become one batch.
#ifndef FRAMED_DAEMON_OUTPUT_CROP_REQUESTS_H
#define FRAMED_DAEMON_OUTPUT_CROP_REQUESTS_H

#include "config/config.h"
#include "daemon/base/ledger.h"
#include "daemon/output/results.h"

enum { CROP_REQUESTS_MAX = 64 }; // that wait

struct crop_requests;

struct crop_request {
    struct frame_info frame;
    uint64_t parent_sequence;
    char region[25];   // as in struct item
    uint64_t sequence; // counts the output's requests
    int n;
    struct crop_box {
        struct rect rect; // whole pixels of the picture, within it
        int object;       // index of the box in the message of those that were found
    } box[CROPS_MAX];
};

// Of an output of that camera, whose name, configuration and ledger outlive the requests. 0 or
// -ENOMEM.
int crop_requests_open(struct crop_requests **ret, const char *camera, const struct output_config *,
                       struct ledger *);
// Nobody adds or takes. What is left is lost as LOSS_STOPPING. Accepts NULL.
void crop_requests_close(struct crop_requests *);

// --- loop thread
// From now on the results of the other output make requests, until others are followed; NULL: none.
// They outlive that.
void crop_requests_follow(struct crop_requests *, struct results *);
// Adds a request for the boxes that are wanted; none where there are no such boxes: those of the
// classes in the configuration that have a pixel within the picture, the best scores first. Where
// too many requests wait, the oldest is lost, or the new one under OVERFLOW_DROP_NEWEST.
void crop_requests_add(struct crop_requests *, const struct found *);

// --- the output's thread
// Waits for a request until `until_ns` (CLOCK_MONOTONIC). 0; -ETIME: there is none, or
// crop_requests_wake was called; -ESHUTDOWN after crop_requests_stop.
int crop_requests_take(struct crop_requests *, struct crop_request *ret, int64_t until_ns);
// Another thread: loses what waits as LOSS_LATE, and waits until the output's thread is through
// with the request that it took.
void crop_requests_drain(struct crop_requests *);
void crop_requests_wake(struct crop_requests *); // any thread
// Ends crop_requests_take, or lets it wait again. Any thread.
void crop_requests_stop(struct crop_requests *, bool stopped);

#endif
