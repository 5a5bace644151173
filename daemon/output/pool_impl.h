// The pool itself. Private to slots*.c.
#ifndef FRAMED_DAEMON_OUTPUT_POOL_IMPL_H
#define FRAMED_DAEMON_OUTPUT_POOL_IMPL_H

#include <pthread.h>

#include "daemon/base/pool_region.h"
#include "daemon/output/pool.h"

enum slot_state { SLOT_FREE, SLOT_FILLING, SLOT_DONE, SLOT_READY };

struct pool {
    const char *name;
    enum region_kind kind;
    struct ledger *ledger;

    // camera thread:
    const struct backend_driver *driver; // NULL: not joined
    struct backend *backend;
    bool wants_device;          // a region of the backend's device, as long as that can be had
    bool told;                  // the log knows that the slots are not on the device
    uint32_t generation;        // of the newest region
    struct pool_region *region; // where slots are taken from; NULL: none yet

    pthread_mutex_t lock;        // guards all below, and users and next of the regions
    pthread_cond_t room;         // a slot became free or was unpinned, a client came, or pool_wake
    struct pool_region *regions; // all of them, newest first
    uint64_t next_ticket;        // of the next slot to be taken
    uint64_t next_publication;   // ticket of the next slot to become ready
    uint64_t head;
    uint64_t passed; // ordinal that the fastest client is at
    int listeners;
    bool ended;                    // pool_end was called
    struct slot_receipt *receipts; // of clients that write on without a slot
    int n;
    struct result slot[];
};

// Under lock. The one exit of every slot that was taken.
void pool_settle(struct pool *, struct result *, enum loss reason);

// --- slots_memory.c, camera thread, not under lock
// Gives the pool a region for slots of `size` bytes where it has none. Mapping and page-locking
// take their time, which nobody else waits for. 0 or -ENOMEM.
int pool_provide(struct pool *, size_t size);
void pool_collect(struct pool *); // closes regions that no slot is in any more

// --- slots_holders.c, under lock
// The oldest ready slot that is not pinned and is no holder's oldest, of all or of those that some
// client got whole; NULL: none.
struct result *pool_spare(struct pool *, bool delivered);

#endif
