// The memory of one pool's slots: a single mapping, so that it can be shared as a whole.
#ifndef FRAMED_DAEMON_BASE_POOL_REGION_H
#define FRAMED_DAEMON_BASE_POOL_REGION_H

#include <stdatomic.h>

#include "daemon/base/region.h"

struct pool_region {
    struct region
        host; // 64-bit words, one per slot; headers; the slots, unless they are on the device
    struct region device; // the slots; base NULL: they are on the host
    size_t first, stride; // slot i is at `first` + i * `stride` bytes from the start
    // Room for headers of slot i: `header_stride` bytes at `headers` + i * `header_stride` in host.
    size_t headers, header_stride;
    uint32_t generation;      // numbers the regions of a pool from 1
    int users;                // slots in use; under the pool's lock
    struct pool_region *next; // an older one of the same pool
};

// Selects where a pool_region is allocated.
struct pool_region_place {
    enum region_kind kind;
    struct shared_object *object;        // gives a REGION_SHARED its name; NULL: none
    const struct backend_driver *driver; // for a device region, as in region_open
    struct backend *backend;
};

// Allocates n slots of `size` bytes with `header_bytes` of headers each, which may be 0. Returns 0,
// or an error of region_open or region_open_named.
int pool_region_open(struct pool_region **ret, const struct pool_region_place *, int n, size_t size,
                     size_t header_bytes);
void pool_region_close(struct pool_region *);
// Returns the bytes needed on the device and on the host. Allocates nothing.
struct memory_need pool_region_need(enum region_kind, int n, size_t size);

bool pool_region_on_device(const struct pool_region *);
void *pool_region_data(const struct pool_region *, int number);
void *pool_region_headers(const struct pool_region *, int number);
// The word of slot `number`: its ticket while clients may rely on the slot's contents, else 0.
_Atomic uint64_t *pool_region_word(const struct pool_region *, int number);

#endif
