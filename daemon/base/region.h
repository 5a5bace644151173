// Memory for frames: regions, named objects that they may be shared by, and regions of a pool.
#ifndef FRAMED_DAEMON_BASE_REGION_H
#define FRAMED_DAEMON_BASE_REGION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "kernels/backend.h"

// --- shared_object: the name of a POSIX shared memory object (shm_open), held by one output from
// open to close. The memory under the name may be replaced: programs that mapped the old memory
// keep it. An object has no seals: every program that may open it can write to it and change its
// size.
//
// The daemon holds a lock (flock) on the file of its name, and the lock ends with the process. So
// the next daemon can tell a file left by a killed daemon from the file of a running one. Files of
// framed have the sticky bit, which has no other meaning on a file.

struct shared_object {
    pthread_mutex_t lock; // guards the rest
    const char *name;     // with its leading slash
    int mode;             // of the files
    gid_t group;          // of the files; -1: the group of the process
    int fd;               // of the file with the name, locked, read-write; -1: closed
    size_t bytes;         // of that file
};

void shared_object_init(struct shared_object *); // closed
// Checks that a name can be taken. Returns 0 or a negative errno, as shared_object_open.
int shared_object_check(const char *name, char *why, size_t size);
// Takes the name, without memory at first. Also takes it again if an open object has lost it.
// Returns 0 or a negative errno, with one sentence in `why`: -EADDRINUSE: another program has the
// name; -EEXIST: the file of that name is not framed's. `name` outlives the object.
int shared_object_open(struct shared_object *, const char *name, int mode, gid_t group, char *why,
                       size_t size);
// Frees the name. Accepts a closed one.
void shared_object_close(struct shared_object *);
// Returns true if it is closed, or if the file was removed, replaced or truncated.
bool shared_object_is_lost(struct shared_object *);

// Any thread. Allocates zeroed memory without a name. Returns a descriptor to map it, or a negative
// errno; -ENOMEM also if /dev/shm is full.
int shared_object_allocate(size_t bytes);
// Moves the name to the memory and takes its descriptor `fd`; *read_only is a read-only descriptor
// for the caller. Returns 0 or a negative errno, and `fd` stays the caller's: -ESHUTDOWN: the
// object is closed; others as shared_object_open.
int shared_object_publish(struct shared_object *, int fd, size_t bytes, int *read_only);

// --- region: page-aligned host memory, private or shareable (a memfd), or device memory that other
// processes can map. Host memory outlives every backend: a backend pins it while it uses it and
// unpins it when it closes. Any thread; one owner at a time.

// The last two are device memory, which others open by descriptor or by a CUDA IPC handle.
enum region_kind { REGION_PRIVATE, REGION_SHARED, REGION_DEVICE, REGION_DEVICE_IPC };

static inline bool region_is_on_device(enum region_kind kind)
{
    return kind >= REGION_DEVICE;
}

struct region {
    enum region_kind kind;
    uint8_t *base;
    size_t bytes; // whole pages
    int fd;       // a memfd of fixed size, or the device's export; -1: private
    bool named;   // `fd` is a POSIX object instead of a memfd, and others can change it
    _Atomic enum memory memory; // MEMORY_HOST or MEMORY_PINNED; MEMORY_CUDA for a device region
    uint8_t uuid[16];           // of a device region: its device
    uint8_t handle[64];         // of a REGION_DEVICE_IPC: cudaIpcMemHandle_t
    // The owner of a device region; otherwise private to region.c:
    const struct backend_driver *driver;
    struct backend *backend;
    struct device_export device;
};

// Allocates at least `bytes`, zeroed, not pinned. A device region belongs to `backend` and must be
// closed before it; the other kinds need no backend (NULL). Returns 0, -ENOMEM, -ENOTSUP or -EIO.
int region_open(struct region *, enum region_kind, size_t bytes,
                const struct backend_driver *driver, struct backend *backend);
// The same as a REGION_SHARED under the object's name. Also returns errors of
// shared_object_publish.
int region_open_named(struct region *, size_t bytes, struct shared_object *);
void region_close(struct region *); // unpins; accepts a zeroed one

// Host regions: `memory` becomes MEMORY_PINNED if the backend can pin it. A failure to pin is no
// error, copies are just slower. Memory pinned by another backend stays pinned during the change.
void region_pin(struct region *, const struct backend_driver *driver, struct backend *backend);
void region_unpin(struct region *); // from the backend that pinned it; otherwise does nothing

// --- pool_region: the memory of one pool's slots: a single mapping, so that it can be shared as a
// whole

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
