// Where the slots of one pool lie: one mapping for all of them, so that it can be shared as a
// whole.
#ifndef FRAMED_DAEMON_BASE_POOL_REGION_H
#define FRAMED_DAEMON_BASE_POOL_REGION_H

#include <stdatomic.h>

#include "daemon/base/region.h"

struct pool_region {
    struct region
        host; // 64-bit words, one a slot; headers; the slots, unless they are on the device
    struct region device; // the slots; base NULL: they are on the host
    size_t first, stride; // slot i is `first` + i * `stride` bytes behind the start
    // Room for headers of slot i: `header_stride` bytes at `headers` + i * `header_stride` in host.
    size_t headers, header_stride;
    uint32_t generation;      // counts the regions of a pool from 1
    int users;                // slots that are in use; under the pool's lock
    struct pool_region *next; // of the same pool, older
};

// Where a pool_region is to be.
struct pool_region_place {
    enum region_kind kind;
    struct shared_object *object;        // of a REGION_SHARED, which gets the name; NULL: none
    const struct backend_driver *driver; // of one on the device, as region_open has it
    struct backend *backend;
};

// For n slots of `size` bytes, with `header_bytes` of headers each, which may be 0. 0, or what
// region_open and region_open_named fail with.
int pool_region_open(struct pool_region **ret, const struct pool_region_place *, int n, size_t size,
                     size_t header_bytes);
void pool_region_close(struct pool_region *);
// What it takes of the device and of the host, bytes. Needs neither.
struct memory_need pool_region_need(enum region_kind, int n, size_t size);

bool pool_region_on_device(const struct pool_region *);
void *pool_region_data(const struct pool_region *, int number);
void *pool_region_headers(const struct pool_region *, int number);
// The word of slot `number`: its ticket while clients may rely on what is in the slot, else 0.
_Atomic uint64_t *pool_region_word(const struct pool_region *, int number);

#endif
