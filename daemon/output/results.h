// Results that clients of a ring send for an output's frames (daemon/wire.h): each message is
// checked, its boxes are mapped to pixels of the camera's picture, and receivers are notified.
//
// The last frames lent to clients are remembered, since a client identifies a frame by its ticket
// alone and may answer when the frame's slot already has another one. Without a receiver nothing is
// remembered. Every message counts once: as a result, or as wrong for one reason. Every detection
// of a result counts once: as an object, or as dropped for one reason.
//
// Loop thread only.
#ifndef FRAMED_DAEMON_OUTPUT_RESULTS_H
#define FRAMED_DAEMON_OUTPUT_RESULTS_H

#include "config/config.h"
#include "daemon/base/counters.h"
#include "daemon/output/pool.h"
#include "daemon/wire.h"

enum {
    RESULTS_TICKETS_MAX = 256,   // remembered frames or batches; never fewer than slots
    RESULTS_ELEMENTS_MAX = 4096, // remembered elements in all; lowers the above
    RESULT_BYTES_MAX =
        sizeof(struct framed_ring_result) + FRAMED_DETECTIONS_MAX * sizeof(struct framed_detection),
};

// Reasons to reject a whole message. Names are in results.c.
enum result_wrong {
    RESULT_NOT_WANTED, // the output has no receiver
    RESULT_FLOOD,      // any reason: more wrong ones than elements lent to the client
    RESULT_VERSION,    // unsupported version
    RESULT_LENGTH,     // not the length of its detections, or too many of these
    RESULT_FLAGS,      // unknown flags
    RESULT_TICKET,     // not lent to the client, or forgotten
    RESULT_SLOT,       // not the ticket's slot
    RESULT_ELEMENT,    // out of range, or empty
    RESULT_TWICE,      // the client has sent a result for it before
    RESULT_WRONGS
};
// Reasons to drop a detection of a valid message.
enum object_drop {
    OBJECT_NUMBER,  // a number is not finite
    OBJECT_FLAGS,   // unknown flags
    OBJECT_AREA,    // the box has no area
    OBJECT_OUTSIDE, // the box lies outside the picture
    OBJECT_DROPS
};
extern const char *const result_wrong_names[RESULT_WRONGS], *const object_drop_names[OBJECT_DROPS];

// A client's result for one frame, or element of a batch; valid during the receiver's call.
struct found {
    const char *camera, *output;
    const char *region; // camera's region that the element shows; "": the whole picture
    int part, parts;    // index of the element in its picture, and their number
    // Crops: sequence of the source picture in the source output, and index of the box in the
    // client's result there; otherwise object is -1.
    uint64_t parent_sequence;
    int object;
    struct frame_info frame;
    uint64_t sequence, ticket;
    uint32_t model;    // detector's number, chosen by the client
    uint32_t client;   // client's number, rising
    bool late;         // the slot was revoked, or the frame is older than max_age
    int64_t result_ns; // CLOCK_MONOTONIC: when the message was received
    int n;
    const struct framed_detection *list; // n detections in pixels of the picture, clipped to it
    const uint16_t *index;               // index of each in the message
};

// Receives all results. Owned by the caller, from results_add_receiver to results_remove_receiver.
// `take` must not add or remove receivers.
struct results_receiver {
    struct results_receiver *next;
    void (*take)(struct results_receiver *, const struct found *);
};

// Totals of the results for pictures of one camera, and its last one.
struct last_found {
    char camera[25];
    uint64_t results, objects, late;
    int64_t result_ns; // of the last: CLOCK_MONOTONIC
    int n;             // its objects
};

// A client of the ring, from results_attach to results_detach. Zeroed before; private to results.c.
struct results_client {
    int index; // among the connected clients
    uint32_t number;
    uint64_t lent, wrong; // elements lent; wrong messages
};

struct results {
    const struct output_config *config;
    struct pool *pool;
    struct results_receiver *receivers;
    struct remembered *remembered; // by ticket; n_remembered entries, or NULL
    int n_remembered;
    uint64_t clients; // bit i: a client with index i is connected
    uint32_t next_number;

    bool counts;      // a receiver was added, or a client sent a result without one
    uint64_t lent;    // elements, once per client
    uint64_t results; // valid ones: one for each of these elements at most
    uint64_t objects, late;
    uint64_t wrong[RESULT_WRONGS], dropped[OBJECT_DROPS];
    struct line_account lines;     // of `detections`
    struct latency latency;        // from a frame's arrival to its result
    struct latency_window recent;  // sampled by the status
    struct last_found *last_found; // of each camera
    int n_last_found;
};

// The configuration and the pool outlive the results. Returns 0 or -ENOMEM.
int results_open(struct results **ret, const struct output_config *, struct pool *);
void results_close(struct results *); // no client may be left; accepts NULL
void results_add_receiver(struct results *, struct results_receiver *);
void results_remove_receiver(struct results *, struct results_receiver *);
// Returns what was found for the camera; NULL: nothing so far. Valid until the next result.
struct last_found *results_last_found(const struct results *, const char *camera);
void results_forget_camera(struct results *, const char *camera); // no member any more

// --- the ring
void results_attach(struct results *, struct results_client *);
void results_detach(struct results *, struct results_client *);
// Records that the result is lent to the client, which was notified of it.
void results_lend(struct results *, struct results_client *, const struct result *);
// Records that pool_return took the result back.
void results_return(struct results *, const struct results_client *, uint64_t ticket);
// Takes one message of `bytes` bytes: a framed_ring_result at least, with its magic. Publishes it
// or counts it as wrong. The slot stays lent.
void results_take(struct results *, struct results_client *, const struct consumer *,
                  const struct framed_ring_result *message, size_t bytes);

#endif
