// Memory for frames: page-aligned host memory, private or shareable (a memfd), or device memory
// that other processes can map. Host memory outlives every backend: a backend pins it while it uses
// it and unpins it when it closes. Any thread; one owner at a time.
#ifndef FRAMED_DAEMON_BASE_REGION_H
#define FRAMED_DAEMON_BASE_REGION_H

#include "daemon/base/shared_object.h"
#include "kernels/backend.h"

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

#endif
