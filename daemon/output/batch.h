// A batch: a result that several cameras fill together, each picture in items of its own.
//
// A picture takes the next free items of the batch that is open, and the first picture of a batch
// opens it. A batch is closed once it is full, once every live member is in it, or when its wait is
// over; it is delivered when the jobs of its items are done. A batch never waits for a camera that
// sends nothing: live is a member whose last picture is younger than three of its periods, and than
// 250 ms, and that the last batch did not wait for in vain.
//
// A picture that finds no room is parked, and the batch's collector (transform/collector.h) submits
// it once there is room. Where more pictures wait than there is room for, the member that was
// served longest ago comes first. Under OVERFLOW_WAIT the camera's thread waits until few pictures
// are parked before it offers the next one, while it holds nothing that others wait for.
//
// Everything is guarded by the pool's lock. Functions are thread-safe; each names its thread.
#ifndef FRAMED_DAEMON_OUTPUT_BATCH_H
#define FRAMED_DAEMON_OUTPUT_BATCH_H

#include "daemon/base/histogram.h"
#include "daemon/output/pool.h"

enum {
    BATCH_PARKED_MAX = 8,    // pictures of one member
    BATCH_PARKED_DEVICE = 2, // the same where they lie in surfaces of NVDEC, which has few
    BATCH_PARKED_WAIT = 2,   // the same under OVERFLOW_WAIT
    BATCH_PERIODS = 64,      // pictures that a member's period is measured over
    BATCH_FILL_BUCKETS = 9,  // up to 256 items
};

struct batch_options {
    struct pool *pool; // outlives the batch
    int capacity;      // items of a batch, at most the pool's
    int per_camera;    // most pictures of one member in a batch
    bool fixed;        // each member has items of its own, by the order of batch_add
    bool fills_tail;   // items behind the last picture are fill too, as those before it always are
    int64_t wait_ns;   // from the first picture to the end of the wait; below 0: by the periods
};

// A picture that waits for room. The batch owns its frame.
struct parked {
    struct frame frame;
    uint64_t sequence, ordinal; // of its items
    int64_t since_ns;           // CLOCK_MONOTONIC
};

// One camera's share in a batch, zeroed but for the first five.
struct batch_member {
    const char *camera;     // its name; outlives the member
    struct ledger *ledger;  // outlives the items' use
    enum overflow overflow; // what happens to pictures that find no room
    int64_t max_age_ns;     // parked pictures that are older are lost; 0: none are
    void *producer;         // that fills the items: of whoever submits what was parked
    // Private to batch.c:
    struct batch *batch;
    struct batch_member *next;
    bool joined, ended;
    int index;       // among the members; those of the same name have the same
    int first, n;    // its items under `fixed`, from its first picture on; n 0: none yet
    bool unplaced;   // it wants more of them than there are
    uint64_t served; // when it was last served: a count of all that were
    uint64_t ticket; // of the last batch that it is in...
    int pictures;    // ...with so many pictures
    bool missed;     // the last batch waited for it in vain
    struct {
        bool begun;        // it was in a batch before, and the rest holds:
        uint32_t epoch;    // of the last picture
        bool epoch_failed; // nor did its first picture get there
        uint64_t expected; // ordinal behind the last picture
        uint64_t lost;     // pictures between its first one and the last
    } position;
    struct parked parked[BATCH_PARKED_MAX]; // the oldest first
    int n_parked;
    int parts;                         // items of each of them
    pthread_cond_t changed;            // fewer are parked, or there is nothing to wait for any more
    int64_t arrival_ns[BATCH_PERIODS]; // CLOCK_MONOTONIC, a ring
    int n_arrivals, next_arrival;
};

struct batch {
    struct batch_options options;
    struct batch_member *members;
    struct result *open;  // takes pictures; NULL: none
    uint64_t open_ticket; // of that
    int64_t due_ns;       // CLOCK_MONOTONIC: its wait ends
    bool opening;         // a thread opens memory for the next one
    bool stopped;
    bool was_unlocked; // since the collector last looked at everything
    uint64_t serial;   // counts what was served
    uint64_t sequence; // of the next batch
    size_t item_size;  // of the first request, like:
    struct result_format format;
    void *blank;                           // an item of nothing but fill
    bool announce;                         // a batch was closed since batch_take last said so
    int n_parked;                          // of all members
    const struct batch_member *submitting; // of the picture that the collector has
    pthread_cond_t submitted;
    // What status and metrics show; any thread reads.
    _Atomic uint64_t closed[CLOSED_STOPPING + 1]; // by enum batch_close
    struct histogram wait;                        // from the first picture to the close
    // Batches by the items that are filled: element i counts those with up to 2^i, and more than
    // the one before.
    _Atomic uint64_t by_filled[BATCH_FILL_BUCKETS];
    _Atomic uint64_t elements; // items of all of them
};

// "full", "all", "wait", "reload", "stopping"; any thread.
const char *batch_close_name(enum batch_close);

// 0 or -ENOMEM.
int batch_open(struct batch **ret, const struct batch_options *);
// Closes the batch that is open: no more follow. The collector delivers it when its jobs are done
// and its empty items are filled. Waits for nothing.
void batch_finish(struct batch *);
void batch_close(struct batch *); // without members and collector; accepts NULL

// Loop thread. A member of the same name that is to leave gives the new one its place.
void batch_add(struct batch *, struct batch_member *);
// Loop thread, after batch_withdraw. Closes a batch that is open; items of the member stay in the
// batches that it is in.
void batch_leave(struct batch_member *);
// The member's camera has ended: the batch follows the others' overflow. Loop thread.
void batch_end(struct batch_member *);
// The member sends pictures from now on: closes a batch that is open, the first time. Camera
// thread.
void batch_join(struct batch_member *);

// --- camera threads
struct batch_request {
    size_t size;                 // bytes of an item: like the format the same for all members, ever
    struct result_format format; // its planes laid out from NULL
    uint32_t fill[3];            // the bits of an element of fill, per channel
    int parts;                   // items of the picture, at most the capacity
    uint64_t ordinal;            // of the picture
    uint32_t epoch;
    int64_t opening_ns; // what the opening of memory took is added here
};

// Under OVERFLOW_WAIT waits until at most `parked` pictures of the member are parked, *stop is set,
// or the sink takes nothing any more.
void batch_wait(struct batch_member *, int parked, const _Atomic bool *stop);
// Items for a picture of the member that has come just now: `parts` of them from *first on, in
// *ret. Waits for nothing. Errors as pool_claim; -EAGAIN: no room: batch_park; -ENOSPC: under
// `fixed` there are no items for the member, ever.
int batch_claim(struct batch_member *, struct batch_request *, struct result **ret, int *first);
// Takes the picture over, which empties `parked`; where too many are, the oldest is lost, or the
// new one under OVERFLOW_DROP_NEWEST. The picture needs `parts` items.
void batch_park(struct batch_member *, struct parked *, int parts);
// Loses what is parked, for that reason, and waits until the collector has submitted what it took
// before.
void batch_withdraw(struct batch_member *, enum loss reason);
// As pool_complete; any thread. Where the job failed while the batch is open, the items are free
// again, and the picture is lost.
void batch_complete(struct batch_member *, struct result *, int first, int n, int status);
void batch_wake(struct batch_member *); // ends batch_wait where *stop is set; any thread

// --- the collector
struct batch_grant {
    struct batch_member *member; // NULL: results may be ready, and there is no picture
    struct parked parked;        // the receiver's
    struct result *result;
    int first;
    bool moved; // the pool has regions beside the present one
};

// Waits for a picture that was parked and has room now, or for a batch to be closed, and closes
// batches meanwhile whose wait is over. The picture counts as being submitted until the next call.
// 0, or -ESHUTDOWN after batch_stop.
int batch_take(struct batch *, struct batch_grant *ret);
void batch_stop(struct batch *); // any thread

#endif
