// The pool of an output's results: producers (camera threads) fill results, consumers (clients, or
// the file) get each of them in order and hold a result until they release it.
//
//     free -> filling (claim to complete) -> done -> ready, in the order of claims -> free
//
// A result is an entry of items: one for a plain output, one for each region or tile of a picture,
// or one for each picture of a batch (output/batch.h, which fills a result by and by and seals it).
// It is ready when it is sealed and all its items are complete. It ends when no consumer needs it
// any more, when a newer result needs its slot, or with its device; then the ledger of each item
// counts it: as emitted where at least one consumer got all of it, else as lost. pool.c:loss_of
// decides the reason. A picture for which no result could be claimed is lost and counted in
// transform/claim.c.
//
// The data of all results lies in one region, which clients of a ring map; a result has the slot of
// its number there. A larger result moves the pool to a new region; results in use stay in the old
// one until they end (output/pool_memory.c).
//
// All functions are thread-safe; each names the thread that calls it. `lock` is the last in the
// order of locks: nothing is locked, posted or logged under it.
#ifndef FRAMED_DAEMON_OUTPUT_POOL_H
#define FRAMED_DAEMON_OUTPUT_POOL_H

#include <pthread.h>

#include "config/config.h"
#include "daemon/base/ledger.h"
#include "daemon/base/pool_region.h"
#include "daemon/decode/frame.h"

enum {
    POOL_RESULTS_MAX = 256, // of one pool
    POOL_BACKENDS_MAX = 65, // that fill one pool: every GPU and the CPU
};

// One picture, or an element of one, in a result: its producer fills it in between claim and
// complete.
struct item {
    struct frame_info frame;
    // Names, or the first 24 bytes of them: one more than the wire has, which cuts at a character.
    char camera[25];
    char region[25];          // of the camera, that the element shows; "": the picture
    uint64_t parent_sequence; // of the picture that it is a part of: `sequence`, but of crops
    int object;               // of crops: index of the box among those that were found
    int part, parts;          // which element of its picture it is, and of how many
    double src_to_dst[6], dst_to_src[6]; // identity for yuv without a geometry
    uint64_t sequence;                   // counts every frame that the camera offered
    uint64_t ordinal;    // the same without the thinned and still ones: gaps are losses
    uint64_t lost;       // of a batch: the camera's pictures since its first one that no batch got
    bool new_epoch;      // of a batch: no picture of its epoch was in one before
    uint64_t valid_op;   // serial of the op whose whole picture lies in the data; 0: of none
    int64_t finished_ns; // CLOCK_MONOTONIC, by pool_complete
    int status;          // 0, or what its job failed with
    // Private to the pool, under its lock:
    struct ledger *ledger; // that counts it; outlives the item's use; NULL: part 0 is counted, or
                           // its camera is gone
    enum item_state { ITEM_EMPTY, ITEM_FILLING, ITEM_COMPLETE } state;
};

// Whether a picture is in it, whole: any thread, of a result that is ready.
bool item_is_filled(const struct item *);

// Why a batch takes no more items.
enum batch_close {
    CLOSED_NOT,
    CLOSED_FULL,
    CLOSED_ALL,
    CLOSED_WAIT,
    CLOSED_RELOAD,
    CLOSED_STOPPING
};

// How to read a result's data: of the first item, and so of all.
struct result_format {
    struct image image; // planes point into the data; format PIXEL_TENSOR for warp
    enum dtype dtype;   // of a tensor; DTYPE_U8 for yuv
    enum layout layout; // of a tensor
    enum order order;   // of a tensor
    enum field_order field_order;
    int rate_num, rate_den; // nominal frames per second of the output; 0/0: unknown
};

// What happened last to a result that nobody got: pool.c:loss_of makes the reason of it.
enum result_fate {
    FATE_NOT_REACHED, // no consumer came to it, or those that would have are gone
    FATE_FAILED,      // its job failed, or the device that its data is on
    FATE_EVICTED,     // a newer result has its slot
    FATE_LATE,        // it was too old for a consumer that came to it, or was held for too long
    FATE_UNDELIVERED, // a consumer released it without having got all of it
    FATE_STOPPED,     // its camera stopped before its job began
};

struct result {
    struct result_format format;
    struct item *item; // n_items of them
    int n_items;       // that it has room for
    void *data;        // size bytes: of each item an equal share, one behind the other
    size_t size;
    enum memory memory;         // of data: what the job's result is to say
    struct pool_region *region; // that data lies in, valid while the result is in use
    // Of a batch; CLOSED_NOT: the result is none. Times are CLOCK_MONOTONIC.
    enum batch_close closed_by;
    int64_t opened_ns, closed_ns;
    uint64_t batch_sequence; // counts the output's batches
    int number;              // of the slot in each of the pool's regions
    uint64_t ticket;         // names this use of the slot, rising; never 0
    // Private to pool.c, under the lock:
    enum result_state { RESULT_FREE, RESULT_FILLING, RESULT_DONE, RESULT_READY } state;
    uint32_t generation; // of the region that data last lay in
    int filling;         // items that are claimed and not complete
    bool sealed;         // no further item is claimed
    int awaited;         // by consumers that have not come to it
    int held;            // by consumers that acquired it
    int lent;            // to consumers that read it themselves
    int64_t lent_ns;     // CLOCK_MONOTONIC: when the last of them was told
    bool delivered;      // some consumer got all of it
    enum result_fate fate;
};

// One that gets the pool's results, from pool_attach to pool_detach. Zeroed before; the pool's own.
struct consumer {
    struct consumer *next;
    uint64_t cursor;     // ticket from which on results are still to come to it
    uint64_t taken;      // results that came to it
    uint64_t missed;     // that went before it came to them
    struct result *held; // acquired and neither released nor lent; NULL: none
    struct {
        uint64_t ticket;        // of the result whose payload the consumer detached; 0: of none
        int items;              // to count once it is delivered or not
        struct ledger **ledger; // of each of these; room for as many as a result has
        bool emitted;           // they are counted already: another consumer got them
    } pending;
    int64_t acquired_ns;                  // CLOCK_MONOTONIC: when it came to what it holds
    uint64_t lent[POOL_RESULTS_MAX / 64]; // bit i: result i
};

// What the output's sink is at. POOL_SINK_OPEN from the start.
enum pool_sink {
    POOL_SINK_OPEN,      // or will be soon
    POOL_SINK_REFUSED,   // it cannot be opened: there is nobody to wait for
    POOL_SINK_FINISHING, // nothing is claimed any more; consumers get what is ready
    POOL_SINK_STOPPED,   // consumers get nothing any more but what they hold
};

struct pool_options {
    int n;                 // results, at most POOL_RESULTS_MAX
    int items;             // of each, at most
    const char *name;      // of the output, for the log; outlives the pool
    size_t header_bytes;   // of a result, beside the data for clients of a ring; or 0
    enum region_kind kind; // private: no ring; shared: host memory; device: fallback is shared
    struct shared_object
        *object;            // that a shared one has the name of; outlives the pool; NULL: none
    enum overflow overflow; // what claims do where no result is free, from the start
    int64_t max_age_ns;     // older results are passed over; 0: none are
    enum loss undelivered;  // what a result counts as that consumers did not get
};

struct pool {
    struct pool_options options;

    _Atomic enum overflow overflow; // of the present producers

    pthread_mutex_t memory_lock; // one thread at a time changes the memory; before `lock`
    struct pool_backend {
        const struct backend_driver *driver;
        struct backend *backend;
        int users;                 // producers that it works for
    } backends[POOL_BACKENDS_MAX]; // the first pins the memory on the host
    int n_backends;
    bool logged;      // that the data is not on the device
    int64_t retry_ns; // CLOCK_MONOTONIC: no region is opened before, since the last try failed

    pthread_mutex_t lock;        // guards all below, and users and next of the regions
    pthread_cond_t room;         // a result may be free, or it is not to be waited for any more
    bool wants_device;           // a region of the backend's device, as long as that gives memory
    uint32_t generation;         // of the newest region
    struct pool_region *region;  // where results are claimed; NULL: none yet
    struct pool_region *regions; // all of them, newest first
    uint64_t next_ticket;        // of the next result to be claimed
    _Atomic uint64_t head;       // ticket of the next result to become ready; may be read without
    int64_t held_ns;             // that consumers keep a result: a mean that the last ones rule
    enum pool_sink sink;
    int n_consumers;
    struct consumer *consumers;
    struct result result[];
};

// No memory yet. 0, -ENOMEM, or -EINVAL for more results than POOL_RESULTS_MAX.
int pool_open(struct pool **ret, const struct pool_options *);
// No thread may use it any more. Counts what is left as LOSS_STOPPING; accepts NULL. After
// pool_remove_backend, where it had one.
void pool_close(struct pool *);

// --- producers: camera threads
// A backend fills results from now on, for one producer more: it pins the pool's memory, where no
// other does. A device pool gets a region of it with the next claim, as long as all producers have
// that backend.
void pool_add_backend(struct pool *, const struct backend_driver *, struct backend *);
// One producer less has the backend; none of that producer's jobs may be in flight. With the last
// one the backend goes: results on the host stay as they are, those on its device end as
// LOSS_BACKEND, whoever holds them.
void pool_remove_backend(struct pool *, struct backend *);

struct pool_request {
    size_t size;              // bytes of an item
    int items;                // of the result, at most the pool's
    struct ledger *ledger;    // that counts the picture; outlives the items' use
    int64_t wait_until_ns;    // CLOCK_MONOTONIC: until then waits for room under any `overflow`...
    const _Atomic bool *stop; // ...and not while this is set
    int64_t opening_ns;       // what the opening of memory took is added here
};

// The next result to fill, with all its items claimed. Under OVERFLOW_WAIT waits for room and for a
// first consumer, but not for a sink that is refused. Else makes room when the time to wait is
// over. OVERFLOW_DROP_OLDEST evicts the oldest ready result that no consumer holds and that is not
// the oldest lent to any consumer: what a client is at it keeps, and a client that is stuck loses
// what it hoards before others lose anything newer. OVERFLOW_DROP_NEWEST evicts only what waits for
// slower consumers: what some consumer has passed and nobody holds, or what was delivered and is no
// consumer's oldest. 0, or: -ENOTCONN: there is no consumer; -EPIPE: the sink is refused; -EAGAIN:
// no room; -ECANCELED: *stop; -ESHUTDOWN: the sink finishes; -ENOMEM. On error nothing is counted:
// the caller does.
int pool_claim(struct pool *, struct pool_request *, struct result **ret);
// `n` items from `first` on are complete (status 0) or will never be (negative errno). Any thread.
// Whatever became ready by it is so when this returns.
void pool_complete(struct pool *, struct result *, int first, int n, int status);
// The items that the ledger counts are in no job, and consumers take too long: counts those that
// none of them has got as LOSS_STOPPING, and nothing counts there from now on. Loop thread.
void pool_forget_ledger(struct pool *, struct ledger *);
bool pool_waits(const struct pool *); // under OVERFLOW_WAIT; any thread
void pool_wake(struct pool *);        // lets those that wait look at *stop again; any thread

// --- the sink: loop thread
void pool_set_sink(struct pool *, enum pool_sink);
// Results that are claimed from now on lie in a new region.
void pool_renew_memory(struct pool *);
// From now on the consumer gets results, from the next one on that becomes ready; under
// OVERFLOW_WAIT the first consumer also gets what is ready.
void pool_attach(struct pool *, struct consumer *);
// What a consumer has and had.
struct consumer_report {
    int behind; // results that are ready and have not come to it
    int held;   // results that it has not given back
    uint64_t taken, missed;
};

struct consumer_report pool_report(struct pool *, const struct consumer *);
// The consumer is gone: gives up all that it holds, was lent or was to get.
void pool_detach(struct pool *, struct consumer *);
// Whether pool_acquire may find something. Takes no lock.
bool pool_has_next(struct pool *, const struct consumer *);
// The oldest result that the consumer has not got yet, but for those older than max_age, which it
// passes. The consumer holds the result, and nothing else, until pool_release, pool_lend or
// pool_detach_payload. NULL: none, which takes no lock where none has become ready.
struct result *pool_acquire(struct pool *, struct consumer *);
// The consumer is through with what it holds, or with the payload that it detached; `delivered`: it
// got every byte.
void pool_release(struct pool *, struct consumer *, bool delivered);
// Whether so many results are held that the next consumer to stall should detach its payload.
bool pool_is_short(struct pool *);
// The consumer has copied what it still needs of the result that it holds. The delivery stays
// pending until pool_release. 0; -ENOMEM: the consumer holds it as before.
int pool_detach_payload(struct pool *, struct consumer *);
// Whether it holds anything, was lent anything or has a delivery pending.
bool pool_is_busy(struct pool *, const struct consumer *);

// --- loop thread: consumers that read the pool's memory themselves.
// The consumer was told of the result that it holds. From now on the result may be revoked: by
// pool_revoke, or by pool_claim for a newer one. Not `told`: pool_acquire returns it once more.
void pool_lend(struct pool *, struct consumer *, bool told);
// The consumer got all of the result that was lent to it in slot `number` as `ticket`. Nothing
// happens where it was revoked meanwhile. False: there is no such slot.
bool pool_return(struct pool *, struct consumer *, uint32_t number, uint64_t ticket);
// Whether the consumer may still read what it was lent in slot `number` as `ticket`.
bool pool_has_lent(struct pool *, const struct consumer *, uint32_t number, uint64_t ticket);
// Revokes what was last lent before `lent_ns`. Returns when the first of the results that are still
// lent was; 0: none is.
int64_t pool_revoke(struct pool *, int64_t lent_ns);

// --- between pool.c, pool_memory.c and batch.c; all but the last two with `lock` held
// Whether results of `size` bytes fit into the present region, and that is where it should be.
bool pool_region_fits(const struct pool *, size_t size);
// Whether the sink takes results at all: 0, -EPIPE, -ESHUTDOWN or -ENOTCONN, as of pool_claim.
int pool_check_sink(const struct pool *);
// A free result; under `evicts` also one that the policy gives up for a newer one. NULL: none.
struct result *pool_find_room(struct pool *, bool evicts);
// A free result's use begins, in the present region, which fits: none of its items is claimed.
void pool_begin_result(struct pool *, struct result *, const struct pool_request *);
// For one picture, which `ledger` counts.
void pool_claim_items(struct result *, int first, int n, struct ledger *);
// No further item of the result is claimed. May make results ready.
void pool_seal(struct pool *, struct result *);
// Whoever calls it for a result that is not ready calls pool_publish_done afterwards.
void pool_end_result(struct pool *, struct result *);
// Makes ready what is done, in the order of claims: a backend may finish a younger result first.
void pool_publish_done(struct pool *);
// True while producers still fill a result that consumers will get.
bool pool_is_filling(struct pool *);

// Opens a region for results of `size` bytes, where no other thread has meanwhile. 0 or -ENOMEM,
// for a second after a failure without another try. May take long.
int pool_open_region(struct pool *, size_t size);
// Closes regions that no result is in any more, but for the present one.
void pool_close_unused_regions(struct pool *);

#endif
