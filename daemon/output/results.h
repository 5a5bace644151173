// What clients of a ring send back of an output's frames (daemon/wire.h): each message is checked,
// its boxes are mapped to pixels of the camera's picture, and receivers are told.
//
// The results remember the last frames that were lent to clients, since a client names a frame by
// its ticket alone and may answer when the frame's slot has another one. Nothing is remembered
// while there is no receiver. Every message counts once: as a result, or as wrong for one reason.
// Every detection of a result counts once: as an object, or as dropped for one reason.
//
// Loop thread only.
#ifndef FRAMED_DAEMON_OUTPUT_RESULTS_H
#define FRAMED_DAEMON_OUTPUT_RESULTS_H

#include "config/config.h"
#include "daemon/base/latency.h"
#include "daemon/output/line_queue.h"
#include "daemon/output/pool.h"
#include "daemon/wire.h"

enum {
    RESULTS_TICKETS_MAX = 256,   // frames or batches that are remembered, but for more slots...
    RESULTS_ELEMENTS_MAX = 4096, // ...and fewer where they have more elements than these in all
    RESULTS_CLIENTS_MAX = RING_CLIENTS_MAX,
    RESULT_BYTES_MAX =
        sizeof(struct framed_ring_result) + FRAMED_DETECTIONS_MAX * sizeof(struct framed_detection),
};

// Why a whole message is wrong. Names are in results.c.
enum result_wrong {
    RESULT_NOT_WANTED, // the output has no receiver
    RESULT_FLOOD,      // for any reason, of a client that sent as many wrong ones as it was lent
    RESULT_VERSION,    // of the message
    RESULT_LENGTH,     // it is not that of so many detections, or they are more than allowed
    RESULT_FLAGS,      // that nobody knows
    RESULT_TICKET,     // the client was not lent it, or it is forgotten
    RESULT_SLOT,       // another one than the ticket's
    RESULT_ELEMENT,    // out of range, or nobody filled it
    RESULT_TWICE,      // the client sent a result of it before
    RESULT_WRONGS
};
// Why a detection of a good message is dropped.
enum object_drop {
    OBJECT_NUMBER,  // one is not finite
    OBJECT_FLAGS,   // that nobody knows
    OBJECT_AREA,    // the box has none
    OBJECT_OUTSIDE, // the box lies beside the picture
    OBJECT_DROPS
};
extern const char *const result_wrong_names[RESULT_WRONGS], *const object_drop_names[OBJECT_DROPS];

// What a client found in one frame, or element of a batch; valid during the call that hands it on.
struct found {
    const char *camera, *output;
    const char *region; // of the camera, that the element shows; "": the picture
    int part, parts;    // which element of its picture it is, and of how many
    // Of crops: the picture that it was cut from, by its sequence in the output that they are of,
    // and the index of its box in the client's result there; object is -1 of others.
    uint64_t parent_sequence;
    int object;
    struct frame_info frame;
    uint64_t sequence, ticket;
    float src_to_dst[6], dst_to_src[6];
    uint32_t model;    // the client's own number of its detector
    uint32_t client;   // number of the client, rising
    bool late;         // the slot was revoked, or the frame older than max_age
    int64_t result_ns; // CLOCK_MONOTONIC: when the message was taken
    int n;
    const struct framed_detection *list; // n of them, in pixels of the picture, clipped to it
    const uint16_t *index;               // of each among those in the message
};

// One that is told of all that is found. The caller's, from results_add_receiver to
// results_remove_receiver. It may not add or remove receivers while it is told.
struct results_receiver {
    struct results_receiver *next;
    void (*take)(struct results_receiver *, const struct found *);
};

// What was last found in pictures of one camera.
struct last_found {
    char camera[25];
    uint64_t results, objects, late;
    uint64_t sequence;
    uint32_t epoch;
    int64_t result_ns; // CLOCK_MONOTONIC
    int64_t capture_ns;
    int n, room;
    struct framed_detection *list; // in pixels of the picture
};

// A client of the ring, from results_attach to results_detach. Zeroed before; the results' own.
struct results_client {
    int index; // among those that are connected
    uint32_t number;
    uint64_t lent, wrong; // elements; messages
};

struct results_options {
    const struct output_config *config; // outlives the results
    struct pool *pool;                  // outlives the results
};

struct results {
    struct results_options options;
    struct results_receiver *receivers;
    struct remembered *remembered; // by ticket; n_remembered of them, or NULL
    int n_remembered;
    uint64_t clients; // bit i: there is a client with the index i
    uint32_t next_number;

    bool counts;       // there was a receiver, or a client sent results without
    uint64_t lent;     // elements, to each client
    uint64_t answered; // of these, by a result that is not wrong
    uint64_t results, objects, late;
    uint64_t wrong[RESULT_WRONGS], dropped[OBJECT_DROPS];
    struct line_account lines;      // of `detections`
    struct latency latency;         // from a frame's arrival to its result
    struct latency_window recent;   // sampled by the status
    struct last_found **last_found; // of each camera
    int n_last_found;
};

int results_open(struct results **ret, const struct results_options *); // 0 or -ENOMEM
void results_close(struct results *); // no client is left; accepts NULL
void results_add_receiver(struct results *, struct results_receiver *);
void results_remove_receiver(struct results *, struct results_receiver *);
// What was last found in pictures of the camera; NULL: no result came yet.
struct last_found *results_last_found(const struct results *, const char *camera);
void results_forget_camera(struct results *, const char *camera); // which is no member any more
uint64_t results_wrong(const struct results *);                   // messages, for all reasons

// --- the ring
void results_attach(struct results *, struct results_client *);
void results_detach(struct results *, struct results_client *);
// The client was told of the result, which it is lent.
void results_lend(struct results *, struct results_client *, const struct result *);
// The client gives that slot back, before the pool has it. Nothing happens where it was revoked.
void results_return(struct results *, struct results_client *, const struct consumer *,
                    uint32_t slot, uint64_t ticket);
// One message of the client, whose first 4 bytes say that it is a result: of `bytes` bytes,
// framed_ring_result at least. Publishes or counts it. The slot stays lent.
void results_take(struct results *, struct results_client *, const struct consumer *,
                  const struct framed_ring_result *message, size_t bytes);

#endif
