// The fixed pool of an output: a slot holds one result from the moment the camera thread takes it
// until every client let go of it.
//
//     free -> filling (camera thread, backend) -> done -> ready, in order (loop thread) -> free
//
// All slots lie in one region, which clients of a ring map. A larger frame moves the pool to a new
// region; slots in use stay in the old one until they are free.
//
// The pool keeps the output's ledger for every slot taken: emitted when at least one client took
// all of it, else lost with the reason of whoever freed it. All functions are thread-safe; each
// names the thread that calls it.
#ifndef FRAMED_DAEMON_OUTPUT_POOL_H
#define FRAMED_DAEMON_OUTPUT_POOL_H

#include "config/config.h"
#include "daemon/base/ledger.h"
#include "daemon/base/region.h"
#include "daemon/decode/frame.h"

enum {
    POOL_NO_SINK = -1, // for pool_listeners: the sink cannot be opened
    HOLDERS_MAX = 64,  // holders of one pool
};

// What a client has to know to write a frame: filled by the camera thread when it takes the slot.
struct slot_info {
    struct frame_info frame;
    struct image image;     // planes point into the slot's data; format PIXEL_TENSOR for warp
    int rate_num, rate_den; // nominal frames per second of the output; 0/0: unknown
    uint64_t sequence;      // counts every frame offered to the output
    uint64_t ordinal;       // the same without the thinned ones: gaps are losses
    double src_to_dst[6], dst_to_src[6]; // identity for yuv
    enum dtype dtype;                    // of a tensor; DTYPE_U8 for yuv
    enum layout layout;                  // of a tensor
    enum order order;                    // of a tensor
};

struct result {
    struct slot_info info;
    void *data; // size bytes of payload
    size_t size;
    enum memory memory;         // of data: what the job's result_memory is to be
    struct pool_region *region; // that data lies in, valid while the slot is in use
    int number;                 // of the slot in each of the pool's regions
    uint64_t ticket;            // names this use of the slot; never 0
    uint64_t holds;             // serial of the op whose whole result lies in data; 0: of none
    int64_t finished_ns;        // CLOCK_MONOTONIC, by pool_complete
    // Private to the pool:
    uint32_t generation; // of the region that data last lay in
    int state, pins, status;
    uint64_t holders; // bit i: holder i has it
    int64_t held_ns;  // CLOCK_MONOTONIC: when the last of them got it
    bool delivered;
};

// The account of a frame that a client carries on without its slot. Zeroed when unused.
struct slot_receipt {
    uint64_t ticket;
    bool emitted; // counted already: another client took the frame whole
    struct slot_receipt *next;
};

struct pool;

struct pool_options {
    int n;
    const char *name;      // of the output, for the log; outlives the pool
    enum region_kind kind; // private: no ring; shared: host memory; device: fallback is shared
    struct ledger *ledger; // outlives the pool
};

// No memory yet.
int pool_open(struct pool **ret, const struct pool_options *);
// No thread may use it any more. Counts what is left as `stopping`; accepts NULL. After
// pool_clear_backend, where it was joined.
void pool_close(struct pool *);

// --- camera thread
// The backend that fills slots from now on: pins the pool's memory for it. A device pool gets a
// region of it with the next pool_claim.
void pool_set_backend(struct pool *, const struct backend_driver *, struct backend *);
// The backend goes; none of its jobs may be in flight. Slots on the host stay as they are, those on
// the device are taken back and count as LOSS_BACKEND.
void pool_clear_backend(struct pool *);
// A slot of at least `size` bytes. With OVERFLOW_WAIT waits for room and for a first client until
// *stop, but not for a sink that cannot be opened. With OVERFLOW_DROP_OLDEST takes away the oldest
// ready slot that no client is writing and that is not the oldest of any holder: what a client is
// at it keeps, and one that is stuck loses what it hoards before others lose anything newer. With
// OVERFLOW_DROP_NEWEST only one that waits for slower clients: that pool_passed gives up and
// nobody holds, or that somebody got whole and is no holder's oldest. Returns 0; -ENOTCONN: nobody
// listens (LOSS_CLIENT); -EPIPE: there is no sink (LOSS_SINK); -EAGAIN: no room (LOSS_OVERFLOW);
// -ECANCELED: *stop (LOSS_STOPPING); -ESHUTDOWN: pool_end was called (LOSS_STOPPING); -ENOMEM
// (LOSS_BACKEND). On error nothing is counted: the caller does.
int pool_claim(struct pool *, size_t size, enum overflow, const _Atomic bool *stop,
               struct result **ret);
// Waits, whatever the policy, until a slot is free, there is no client, *stop, or CLOCK_MONOTONIC
// has reached `until_ns`.
void pool_wait(struct pool *, int64_t until_ns, const _Atomic bool *stop);
void pool_wake(struct pool *); // lets those that wait look at *stop again; any thread
void pool_end(struct pool *);  // no slot is taken any more, one that waits included; any thread

// --- backend thread: the result is complete (status 0) or will never be (negative: LOSS_BACKEND).
void pool_complete(struct pool *, struct result *, int status);

// --- loop thread
// Makes ready, in order, what is done. Returns how many slots became ready.
int pool_publish(struct pool *);
// The number of clients, a file counted as one, or POOL_NO_SINK: pool_claim goes by it.
void pool_listeners(struct pool *, int n);
// The oldest ready slot with ordinal >= `from`, pinned: it stays until unpinned. NULL: none.
struct result *pool_next(struct pool *, uint64_t from);
// The client is through with its pinned slot; `delivered`: it got every byte.
void pool_unpin(struct pool *, struct result *, bool delivered);
// Instead of pool_unpin: the client has copied what it still has to write and gives the slot up.
// The frame stays in flight until pool_redeem, which says whether the client wrote the rest.
void pool_carry(struct pool *, struct result *, struct slot_receipt *);
void pool_redeem(struct pool *, struct slot_receipt *, bool delivered);
// Frees ready slots with ordinal < `below` that are neither pinned nor held; those that nobody took
// count as `reason`. To be called after each change by a client.
void pool_retire(struct pool *, uint64_t below, enum loss reason);
// The fastest client is at `ordinal`: what is older waits for slower ones only, and makes room for
// newer frames under OVERFLOW_DROP_NEWEST too, or one that stalls would rule the rest.
void pool_passed(struct pool *, uint64_t ordinal);
// The ordinal behind the newest ready slot: where a client that connects now begins.
uint64_t pool_head(struct pool *);
// Slots pinned now, and slots in all.
int pool_pinned(struct pool *);
int pool_count(const struct pool *);
// True when no slot is filling, done or ready.
bool pool_idle(struct pool *);

// --- loop thread: holders, clients that read the pool's memory themselves. The sink numbers them
// from 0 to HOLDERS_MAX - 1.
// Instead of pool_unpin: the holder was told of the slot. It keeps it until it gives it back, is
// gone, or it is taken away: by pool_expire, or by pool_claim for a newer frame.
void pool_hold(struct pool *, struct result *, int holder);
// The holder is through with slot `number`: it got every byte. Nothing happens when that use of the
// slot is over already.
void pool_give_back(struct pool *, int number, uint64_t ticket, int holder);
void pool_let_go(struct pool *, int holder); // of all that it holds; it is gone
// Takes away from everybody what was handed out last before `held_ns`. Returns when the first of
// the slots that are still held was; 0: none is.
int64_t pool_expire(struct pool *, int64_t held_ns);
bool pool_holds(struct pool *, int holder); // anything

#endif
