// The pool of an output's results: producers (camera threads) fill results, consumers (clients, or
// the file) get each of them in order and hold a result until they release it.
//
//     free -> filling (claim to complete) -> ready, in the order of claims -> free
//
// A result has one item for a plain output, one for each region or tile of a picture, or one for
// each picture of a batch (output/batch.h, which fills a result step by step and seals it). It is
// ready when it is sealed and all its items are complete. It ends when no consumer needs it any
// more, when a newer result needs its slot, or with its device. Then the ledger of each item counts
// it: as emitted if at least one consumer got all of it, else as lost for the reason of
// pool.c:loss_of. A picture without a result is counted as lost in work/work.c, or by its batch.
//
// The data of all results lies in one region, which clients of a ring map; a result has the slot of
// its number there. A larger result moves the pool to a new region; results in use stay in the old
// one until they end (output/pool_memory.c).
//
// All functions are thread-safe; each names its calling thread. `lock` is taken last: nothing is
// locked, posted or logged under it.
#ifndef FRAMED_DAEMON_OUTPUT_POOL_H
#define FRAMED_DAEMON_OUTPUT_POOL_H

#include <pthread.h>

#include "config/config.h"
#include "daemon/base/counters.h"
#include "daemon/base/region.h"
#include "daemon/codec/frame.h"

enum {
    POOL_RESULTS_MAX = 256, // of one pool
    POOL_BACKENDS_MAX = 65, // of one pool: every GPU and the CPU
};

// One picture, or an element of one, in a result. Its producer fills it between claim and complete.
struct item {
    struct frame_info frame;
    // The first 24 bytes of names: one more than on the wire, which cuts at a character.
    char camera[25];
    char region[25];          // shown by the element; "": the whole picture
    uint64_t parent_sequence; // of the source picture: equals `sequence` except for crops
    int object;               // crops: index of the box in the client's result
    int part, parts;          // index of the element in its picture, and their number
    double src_to_dst[6], dst_to_src[6]; // identity for yuv without a geometry
    uint64_t sequence;                   // counts every frame that the camera offered
    uint64_t ordinal;                    // the same without thinned and still ones: gaps are losses
    uint64_t lost;       // batches: the camera's pictures since its first one that no batch got
    bool new_epoch;      // batches: the first picture of its epoch in one
    uint64_t valid_op;   // serial of the op whose complete picture is in the data; 0: none
    int64_t finished_ns; // CLOCK_MONOTONIC, set by pool_complete
    int status;          // 0, or the error of its job
    // Private to the pool, under its lock:
    struct ledger *ledger; // counts it; outlives the item's use; NULL: only part 0 counts, or its
                           // camera is gone
    enum item_state { ITEM_EMPTY, ITEM_FILLING, ITEM_COMPLETE } state;
};

// Returns true if the item has a complete picture. Any thread, for a ready result.
bool item_is_filled(const struct item *);

// Reasons to close a batch.
enum batch_close {
    CLOSED_NOT,
    CLOSED_FULL,
    CLOSED_ALL,
    CLOSED_WAIT,
    CLOSED_RELOAD,
    CLOSED_STOPPING
};

// Format of a result's data: of the first item, and so of all.
struct result_format {
    struct image image; // planes point into the data; format PIXEL_TENSOR for warp
    enum dtype dtype;   // of a tensor; DTYPE_U8 for yuv
    enum layout layout; // of a tensor
    enum order order;   // of a tensor
    enum field_order field_order;
    int rate_num, rate_den; // nominal frames per second of the output; 0/0: unknown
};

struct result {
    struct result_format format;
    struct item *item; // n_items of them
    int n_items;       // capacity
    void *data;        // size bytes: equal shares of the items, back to back
    size_t size;
    enum memory memory;         // of data, for the job's result
    struct pool_region *region; // contains data; valid while the result is in use
    // For batches; CLOSED_NOT: no batch, or an open one. Times are CLOCK_MONOTONIC.
    enum batch_close closed_by;
    int64_t opened_ns, closed_ns;
    uint64_t batch_sequence; // counts the output's batches
    int number;              // of the slot in each of the pool's regions
    uint64_t ticket;         // identifies this use of the slot, rising; never 0
    // Private to pool.c, under the lock:
    enum result_state { RESULT_FREE, RESULT_FILLING, RESULT_READY } state;
    uint32_t generation;       // of the region that data last lay in
    int filling;               // items claimed and not complete
    bool sealed;               // no further item can be claimed
    int held;                  // by consumers that acquired it, and by a batch that fills it
    int64_t lent_ns;           // CLOCK_MONOTONIC: when the last of them was notified
    bool delivered;            // a consumer got all of it
    enum loss loss;            // if no consumer gets it; LOSSES: none has reached it
    struct delivery *delivery; // of its detached payload; NULL: none
};

// A consumer, from pool_attach to pool_detach. Zeroed before; only the pool changes it.
struct consumer {
    struct consumer *next;
    uint64_t cursor;          // ticket of the first result that it has not reached: it awaits that
    uint64_t taken;           // results that it acquired
    uint64_t missed;          // results that ended before it reached them
    struct result *held;      // acquired and neither released nor lent; NULL: none
    struct delivery *pending; // of a detached payload; NULL: none
    int64_t acquired_ns;      // CLOCK_MONOTONIC: when it acquired `held`
    bool lent[POOL_RESULTS_MAX]; // by number of the result
};

// State of the output's sink, initially POOL_SINK_OPEN.
enum pool_sink {
    POOL_SINK_OPEN,      // or will be soon
    POOL_SINK_REFUSED,   // it cannot be opened: do not wait for consumers
    POOL_SINK_FINISHING, // nothing can be claimed; consumers get ready results
    POOL_SINK_STOPPED,   // consumers keep what they hold and get nothing more
};

struct pool_options {
    int n;                 // results, at most POOL_RESULTS_MAX
    int items;             // most items of a result
    const char *name;      // of the output, for the log; outlives the pool
    size_t header_bytes;   // per result, next to the data, for clients of a ring; or 0
    enum region_kind kind; // private: no ring; shared: host memory; device: falls back to shared
    struct shared_object *object; // names a shared region; outlives the pool; NULL: no name
    enum overflow overflow;       // initial policy of claims if no result is free
    int64_t max_age_ns;           // older results are skipped; 0: none
    enum loss undelivered;        // reason of loss if consumers did not get a result
};

struct pool {
    struct pool_options options;

    _Atomic enum overflow overflow; // policy of the present producers

    pthread_mutex_t memory_lock; // one thread at a time changes the memory; taken before `lock`
    struct pool_backend {
        const struct backend_driver *driver;
        struct backend *backend;
        int users;                 // producers that use it
    } backends[POOL_BACKENDS_MAX]; // the first one pins host memory
    int n_backends;
    bool logged;      // logged that the data is not on the device
    int64_t retry_ns; // CLOCK_MONOTONIC: no region is opened before this, as the last try failed

    pthread_mutex_t lock;        // guards all below, and users and next of the regions
    pthread_cond_t room;         // a result may be free, or waiting is over
    bool wants_device;           // regions are on the backend's device, until that has no memory
    uint32_t generation;         // of the newest region
    struct pool_region *region;  // where results are claimed; NULL: opened by the next claim
    struct pool_region *regions; // all of them, newest first
    uint64_t next_ticket;        // of the next result to be claimed
    _Atomic uint64_t head; // ticket of the next result to become ready; may be read without lock
    int64_t held_ns;       // moving mean of the time that consumers keep a result
    enum pool_sink sink;
    int n_consumers;
    struct consumer *consumers;
    struct result result[];
};

// Opens a pool without memory. Returns 0, -ENOMEM, or -EINVAL for over POOL_RESULTS_MAX results.
int pool_open(struct pool **ret, const struct pool_options *);
// Counts remaining results as LOSS_STOPPING. Backends must be removed before, and no thread may use
// the pool any more. Accepts NULL.
void pool_close(struct pool *);

// --- producers: camera threads
// Adds a producer that fills results with this backend. The first backend pins the pool's memory. A
// device pool gets a region on its device with the next claim, while all producers have that
// backend.
void pool_add_backend(struct pool *, const struct backend_driver *, struct backend *);
// Removes a producer of the backend, with no jobs in flight. The last one also removes the backend:
// results on the host stay, results on its device end as LOSS_BACKEND, even those in use.
void pool_remove_backend(struct pool *, struct backend *);

struct pool_request {
    size_t size;              // bytes of an item
    int items;                // of the result, at most the pool's
    struct ledger *ledger;    // counts the picture; outlives the items' use
    int64_t wait_until_ns;    // CLOCK_MONOTONIC: waits for room until then under any `overflow`...
    const _Atomic bool *stop; // ...unless this is set
    int64_t opening_ns;       // the time to open memory is added here
};

// Claims the next result to fill, with all its items. Under OVERFLOW_WAIT waits for room and for a
// first consumer, unless the sink is refused. Else evicts a result when the time to wait is over.
// OVERFLOW_DROP_OLDEST evicts the oldest ready result that no consumer holds and that is not the
// oldest lent to any consumer: a client keeps the one it reads, and a stuck client loses its hoard
// before others lose anything newer. OVERFLOW_DROP_NEWEST evicts only results that wait for slower
// consumers: a consumer has passed them and none holds them, or they were delivered and are no
// consumer's oldest. Returns 0; -ENOTCONN: no consumer; -EPIPE: the sink is refused; -EAGAIN: no
// room; -ECANCELED: *stop; -ESHUTDOWN: the sink is finishing; -ENOMEM. On error the caller counts
// the loss.
int pool_claim(struct pool *, struct pool_request *, struct result **ret);
// Completes `n` items from `first` on: filled (status 0) or failed (negative errno). Results that
// become ready by this are ready when it returns. Any thread.
void pool_complete(struct pool *, struct result *, int first, int n, int status);
// Detaches a ledger whose items are in no job, when consumers take too long: counts items that no
// consumer got as LOSS_STOPPING, and nothing there from now on. Loop thread.
void pool_forget_ledger(struct pool *, struct ledger *);
bool pool_waits(const struct pool *); // true under OVERFLOW_WAIT; any thread
void pool_wake(struct pool *);        // makes waiting producers check *stop; any thread

// --- the sink: loop thread
void pool_set_sink(struct pool *, enum pool_sink);
// Places results claimed from now on in a new region.
void pool_renew_memory(struct pool *);
// Adds a consumer, which gets all results that become ready from now on; under OVERFLOW_WAIT the
// first consumer also gets earlier ready ones.
void pool_attach(struct pool *, struct consumer *);
// State of a consumer.
struct consumer_report {
    int behind; // ready results that it has not reached
    int held;   // results that it has not returned
    uint64_t taken, missed;
};

struct consumer_report pool_report(struct pool *, const struct consumer *);
// Returns true while producers fill a result that consumers will get.
bool pool_is_filling(struct pool *);
// Removes a consumer, with all results that it holds, was lent or was to get.
void pool_detach(struct pool *, struct consumer *);
// Returns true if pool_acquire may find a result. Takes no lock.
bool pool_has_next(struct pool *, const struct consumer *);
// Returns the oldest result that the consumer has not reached, and skips those older than max_age.
// The consumer holds it, and nothing else, until pool_release, pool_lend or pool_detach_payload.
// NULL: none; takes no lock if no more results became ready.
struct result *pool_acquire(struct pool *, struct consumer *);
// Releases the consumer's result, or ends the delivery of its detached payload; `delivered`: it got
// every byte.
void pool_release(struct pool *, struct consumer *, bool delivered);
// Returns true if so many results are held that the next stalled consumer should detach.
bool pool_is_short(struct pool *);
// Releases the consumer's result after it copied the rest. The delivery stays pending until
// pool_release. Returns 0; -ENOMEM: the consumer still holds it.
int pool_detach_payload(struct pool *, struct consumer *);
// Returns true if it holds a result, was lent one or has a delivery pending.
bool pool_is_busy(struct pool *, const struct consumer *);

// --- loop thread: consumers that read the pool's memory themselves.
// Lends the held result to the consumer, which was notified of it. From now on it may be revoked:
// by pool_revoke, or by pool_claim for a newer one. Not `notified`: pool_acquire returns it again.
void pool_lend(struct pool *, struct consumer *, bool notified);
// Takes back the result lent in slot `number` as `ticket`: the consumer got all of it. Returns 1;
// 0: it was revoked meanwhile; -EINVAL: there is no such slot.
int pool_return(struct pool *, struct consumer *, uint32_t number, uint64_t ticket);
// Returns true if the consumer may still read slot `number`, which was lent as `ticket`.
bool pool_has_lent(struct pool *, const struct consumer *, uint32_t number, uint64_t ticket);
// Revokes results last lent before `lent_ns`. Returns the earliest lent_ns of those still lent; 0:
// none.
int64_t pool_revoke(struct pool *, int64_t lent_ns);

// --- between pool.c, pool_memory.c and batch.c; all but pool_close_unused_regions with `lock` held
// Returns true if results of `size` bytes fit into the present region, in the right memory.
bool pool_region_fits(const struct pool *, size_t size);
// Returns 0 if the sink takes results, else -EPIPE, -ESHUTDOWN or -ENOTCONN, as pool_claim.
int pool_check_sink(const struct pool *);
// Returns a free result; with `evicts`, evicts one by the policy if needed. NULL: none.
struct result *pool_find_room(struct pool *, bool evicts);
// Begins the use of a free result in the present region, which fits. Claims no items.
void pool_begin_result(struct pool *, struct result *, const struct pool_request *);
// Claims items for one picture, which `ledger` counts.
void pool_claim_items(struct result *, int first, int n, struct ledger *);
// Ends the claiming of items. May make results ready.
void pool_seal(struct pool *, struct result *);
// Ends a result. If it was not ready, call pool_publish_done afterwards.
void pool_end_result(struct pool *, struct result *);
// Makes done results ready in the order of claims: a backend may finish a younger one first.
void pool_publish_done(struct pool *);
// Completes items as pool_complete.
void pool_complete_items(struct pool *, struct result *, int first, int n, int status);
// Opens a region for results of `size` bytes, unless another thread did. Releases the lock
// meanwhile, and adds that time to *opening_ns. Returns 0 or -ENOMEM; does not try again for a
// second after a failure.
int pool_open_region(struct pool *, size_t size, int64_t *opening_ns);
// Closes unused regions, except the present one.
void pool_close_unused_regions(struct pool *);

#endif
