// Queue of requests to crop boxes that clients of one output found, for another output of the same
// camera. A request has the selected boxes of one picture and becomes one batch. The loop thread
// adds requests as results arrive, and has them served on libuv's threads, one after the other, by
// the camera's crops (work/crops.c). That output's ledger counts each request.
#ifndef FRAMED_DAEMON_OUTPUT_CROP_REQUESTS_H
#define FRAMED_DAEMON_OUTPUT_CROP_REQUESTS_H

#include "config/config.h"
#include "daemon/base/counters.h"
#include "daemon/base/loop.h"
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
        float score;
        int object; // index of the box in the client's message
    } box[CROPS_MAX];
};

// Opens the queue for an output of that camera. The name, configuration and ledger outlive it.
// Returns 0 or -ENOMEM.
int crop_requests_open(struct crop_requests **ret, const char *camera, const struct output_config *,
                       struct ledger *);
// Counts waiting requests as LOSS_STOPPING. None is being served any more. Loop thread. Accepts
// NULL.
void crop_requests_close(struct crop_requests *);

// --- loop thread
// Makes requests from these results of the other output from now on, in place of earlier ones;
// NULL: none. Has them served by work of that queue; NULL: of the former one. Both outlive that.
void crop_requests_follow(struct crop_requests *, struct results *, struct work_queue *);
// Adds a request for the selected boxes, if any: boxes of the configured classes with a pixel
// within the picture, best scores first. If too many requests wait, the oldest is lost, or the new
// one under OVERFLOW_DROP_NEWEST. While there is nobody to serve it, it is late.
void crop_requests_add(struct crop_requests *, const struct found *);

// --- the camera's crops
// Serves a request, until crop_requests_done. On a thread of libuv.
typedef void crop_server(void *opaque, struct crop_request *);

// Requests are served from now on, one after the other.
void crop_requests_serve(struct crop_requests *, crop_server *, void *opaque);
// The request that was served last has ended; the next one follows. Any thread.
void crop_requests_done(struct crop_requests *, struct event_queue *);
// Serves none any more. Counts waiting requests as LOSS_LATE, and waits for the one being served.
void crop_requests_drain(struct crop_requests *);

#endif
