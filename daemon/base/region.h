// Memory that frames live in: page-aligned host memory, private or shareable (a memfd), or device
// memory that other processes can map. Host memory outlives every backend: a backend pins it while
// it works with it and unpins it when it goes. Any thread; one owner at a time.
#ifndef FRAMED_DAEMON_BASE_REGION_H
#define FRAMED_DAEMON_BASE_REGION_H

#include "daemon/base/shared_object.h"
#include "kernels/backend.h"

// The last two are of a device, which others open by a descriptor or by CUDA's IPC handle.
enum region_kind { REGION_PRIVATE, REGION_SHARED, REGION_DEVICE, REGION_DEVICE_IPC };

static inline bool region_is_on_device(enum region_kind kind)
{
    return kind >= REGION_DEVICE;
}

struct region {
    enum region_kind kind;
    uint8_t *base;
    size_t bytes; // whole pages
    int fd;       // a memfd that cannot change size, or the device's export; -1: private
    bool named;   // `fd` is of a POSIX object in place of a memfd, which others can change
    _Atomic enum memory memory; // MEMORY_HOST or MEMORY_PINNED; MEMORY_CUDA for a device region
    uint8_t uuid[16];           // of a device region's device
    uint8_t handle[64];         // of a REGION_DEVICE_IPC: cudaIpcMemHandle_t
    // Of a device region, whose it is; else private to region.c:
    const struct backend_driver *driver;
    struct backend *backend;
    struct device_export device;
};

// At least `bytes`, zeroed, not pinned. A device region is of `backend` and must be closed before
// it; the others need none (NULL). 0, -ENOMEM, -ENOTSUP or -EIO.
int region_open(struct region *, enum region_kind, size_t bytes,
                const struct backend_driver *driver, struct backend *backend);
// The same as a REGION_SHARED, which has the object's name. Also what shared_object_publish fails
// with.
int region_open_named(struct region *, size_t bytes, struct shared_object *);
void region_close(struct region *); // unpins; accepts a zeroed one

// Host regions: `memory` becomes MEMORY_PINNED where the backend pins it. Failing to pin is no
// failure: copies are slower then. What another backend has pinned stays pinned while it goes over.
void region_pin(struct region *, const struct backend_driver *driver, struct backend *backend);
void region_unpin(struct region *); // of the backend that it was pinned by; else does nothing

#endif
