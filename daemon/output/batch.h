// A batch: a result that several cameras fill together, each picture in items of its own.
//
// A picture takes the next free items of the open batch; the first picture opens one. A batch is
// closed when it is full, when every live member is in it, or when its wait is over; it is
// delivered when the jobs of its items are done. A batch never waits for a camera that sends
// nothing: a member is live if its last picture is younger than three of its periods or 250 ms,
// whichever is longer, and the last batch did not wait for it in vain.
//
// A picture without room is parked, and the batch's collector, a thread, submits it when there is
// room, first for the member served longest ago. Under OVERFLOW_WAIT the camera's thread waits
// until few pictures are parked before it offers the next one, and holds nothing meanwhile that
// others wait for.
//
// The pool's lock guards everything, and all waits are for its condition `room`. Functions are
// thread-safe; each names its thread.
#ifndef FRAMED_DAEMON_OUTPUT_BATCH_H
#define FRAMED_DAEMON_OUTPUT_BATCH_H

#include "daemon/base/counters.h"
#include "daemon/base/loop.h"
#include "daemon/output/pool.h"

enum {
    BATCH_PARKED_MAX = 8,    // pictures of one member
    BATCH_PARKED_DEVICE = 2, // the same in surfaces of NVDEC, which has few
    BATCH_PARKED_WAIT = 2,   // the same under OVERFLOW_WAIT
    BATCH_PERIODS = 64,      // most periods over which a member's period is measured
    BATCH_FILL_BUCKETS = 9,  // up to 256 items
};

struct batch_options {
    struct pool *pool; // outlives the batch
    int capacity;      // items of a batch, at most the pool's
    int per_camera;    // most pictures of one member in a batch
    bool fixed;        // each member has its own items, in the order of batch_add
    bool fills_tail;   // also fills items after the last picture, not only those before it
    int64_t wait_ns;   // from the first picture to the end of the wait; negative: by the periods
};

// A picture that waits for room. The batch owns its frame.
struct parked {
    struct frame frame;
    uint64_t sequence, ordinal; // of its items
    int64_t since_ns;           // CLOCK_MONOTONIC
};

// One camera's share in a batch, zeroed except for the first five members.
struct batch_member {
    const char *camera;     // its name; outlives the member
    struct ledger *ledger;  // outlives the items' use
    enum overflow overflow; // policy for pictures without room
    int64_t max_age_ns;     // older parked pictures are lost; 0: none
    void *producer;         // fills the items; belongs to the submitter of parked pictures
    // Private to batch.c:
    struct batch *batch;
    struct batch_member *next;
    bool joined;
    int index;       // among the members; a name keeps one index
    int first, n;    // its items under `fixed`, since its first picture; n 0: none so far
    bool unplaced;   // it needs more items than are free
    uint64_t served; // batch.serial when it was last served
    uint64_t ticket; // of its last batch...
    int pictures;    // ...and its pictures there
    bool missed;     // the last batch waited for it in vain
    struct {
        bool begun;        // it was in a batch before, and the rest is valid:
        uint32_t epoch;    // of the last picture
        bool epoch_failed; // the epoch's first picture failed: the next one is marked
        uint64_t expected; // ordinal after the last picture
        uint64_t lost;     // pictures lost between its first one and the last
    } position;
    struct parked parked[BATCH_PARKED_MAX]; // the oldest first
    int n_parked;
    int parts; // items of each parked picture
    // CLOCK_MONOTONIC: arrival of the last picture, 0: none, and of an earlier one...
    int64_t arrived_ns, measured_ns;
    int periods; // ...and their number between the two
};

// A parked picture with its items.
struct batch_grant {
    struct batch_member *member; // NULL: no picture, but results may be ready
    struct parked parked;        // owned by the receiver
    struct result *result;
    int first, parts; // its items
};

struct batch {
    struct batch_options options;
    struct batch_member *members;
    struct result *open;  // takes pictures; NULL: none
    uint64_t open_ticket; // its ticket
    int64_t due_ns;       // CLOCK_MONOTONIC: end of its wait
    bool opening;         // a thread is opening memory for the next one
    bool stopped;
    uint64_t serial;   // counts served pictures
    uint64_t sequence; // of the next batch
    size_t item_size;  // of the first request, like:
    struct result_format format;
    void *blank;                     // an item of fill only
    bool announce;                   // a batch was closed since batch_take last reported one
    int n_parked;                    // of all members
    struct batch_member *submitting; // whose picture the collector has
    struct frame lost;               // released with the lock
    // The collector's thread, if it was started:
    bool started, ended;
    pthread_t thread;
    void (*submit)(struct batch_grant *);
    struct event_queue *events;
    struct event *ready;
    // For status and metrics; any thread may read.
    _Atomic uint64_t closed[CLOSED_STOPPING + 1]; // by enum batch_close
    struct histogram wait;                        // from the first picture to the close
    // Batches by filled items: element i counts those with up to 2^i, and more than the one before.
    _Atomic uint64_t by_filled[BATCH_FILL_BUCKETS];
    _Atomic uint64_t elements; // filled items of all batches
};

// "full", "all", "wait", "reload", "stopping"; any thread.
const char *batch_close_name(enum batch_close);

// Returns 0 or -ENOMEM.
int batch_open(struct batch **ret, const struct batch_options *);
void batch_close(struct batch *); // stops the collector; members must be gone; accepts NULL

// Adds a member; it takes the place of a leaving one of the same name. Loop thread.
void batch_add(struct batch *, struct batch_member *);
// Removes a member, after batch_withdraw. Closes the open batch; items of the member stay in their
// batches. Loop thread.
void batch_leave(struct batch_member *);
// Records that the member's camera ended: the batch follows the others' overflow. Loop thread.
void batch_end(struct batch_member *);
// Records that the member sends pictures: the first call closes the open batch. Camera thread.
void batch_join(struct batch_member *);

// --- camera threads
struct batch_request {
    size_t size; // bytes of an item; like the format, always the same for all members
    struct result_format format; // its planes laid out from NULL
    uint32_t fill[3];            // bits of an element of fill, per channel
    int parts;                   // items of the picture, at most the capacity
    uint64_t ordinal;            // of the picture
    uint32_t epoch;
    int64_t opening_ns; // the time to open memory is added here
};

// Under OVERFLOW_WAIT waits until at most `parked` pictures of the member are parked, *stop is set,
// or the sink takes no more results. pool_wake makes it check *stop.
void batch_wait(struct batch_member *, int parked, const _Atomic bool *stop);
// Claims items for a new picture of the member: `parts` of them from *first on, in *ret. Does not
// wait. Errors as pool_claim; -EAGAIN: no room, call batch_park; -ENOSPC: under `fixed` there are
// never items for the member.
int batch_claim(struct batch_member *, struct batch_request *, struct result **ret, int *first);
// Parks a picture that needs `parts` items: takes ownership and empties `parked`. If too many are
// parked, the oldest is lost, or the new one under OVERFLOW_DROP_NEWEST.
void batch_park(struct batch_member *, struct parked *, int parts);
// Loses parked pictures for `reason`, or the sink's reason if that is not open, and waits until the
// collector has submitted the picture that it took before.
void batch_withdraw(struct batch_member *, enum loss reason);
// Completes items as pool_complete. If the job failed while the batch is open, the items are free
// again, and the picture is lost. Any thread.
void batch_complete(struct batch_member *, struct result *, int first, int n, int status);

// --- the collector

// Starts its thread, which submits parked pictures and posts the event when results may be ready.
// Does nothing after the first time, or after batch_stop. Returns 0 or a negative errno. Loop
// thread.
int batch_start(struct batch *, void (*submit)(struct batch_grant *), struct event_queue *,
                struct event *ready);
// Ends the thread. Returns true if it has ended, which `waits` waits for. Loop thread.
bool batch_stop(struct batch *, bool waits);
// The step of the thread: waits for a parked picture that has room now, or for a closed batch;
// meanwhile closes batches whose wait is over. The picture counts as being submitted until the next
// call. Returns 0, or -ESHUTDOWN after batch_stop.
int batch_take(struct batch *, struct batch_grant *ret);

#endif
