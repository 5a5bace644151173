#include "daemon/base/region.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LARGE_PAGE = 2 << 20 };

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

// Populates every page now, so that no frame waits for one. Only shared regions report a lack of
// memory, when they allocate: MAP_POPULATE does not report pages that it could not get.
static int map_pages(struct region *region, int flags)
{
    void *base =
        mmap(NULL, region->bytes, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, region->fd, 0);
    if (base == MAP_FAILED)
        return -ENOMEM;
    region->base = base;
    return 0;
}

// A picture is read at many rows at once, too many small pages for the TLB. So pictures request
// large pages, where the system grants them, before the first touch.
static int map_large(struct region *region)
{
    const size_t room = region->bytes + LARGE_PAGE;
    uint8_t *begin = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED)
        return -ENOMEM;
    const size_t before = -(uintptr_t)begin % LARGE_PAGE;
    region->base = begin + before;
    if (before > 0)
        munmap(begin, before);
    munmap(region->base + region->bytes, LARGE_PAGE - before);
    madvise(region->base, region->bytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < region->bytes; i += page_bytes())
        ((volatile uint8_t *)region->base)[i] = 0;
    return 0;
}

static int open_private(struct region *region)
{
    return region->bytes < LARGE_PAGE ? map_pages(region, MAP_PRIVATE | MAP_ANONYMOUS)
                                      : map_large(region);
}

// Prevents holders of the descriptor from changing its size or writing to it; our own mapping
// exists already and stays writable. A seal that the kernel does not support is skipped.
static void seal_descriptor(int fd)
{
    const int seals[] = {F_SEAL_GROW | F_SEAL_SHRINK, F_SEAL_FUTURE_WRITE, F_SEAL_SEAL};
    for (size_t i = 0; i < sizeof seals / sizeof seals[0]; i++)
        fcntl(fd, F_ADD_SEALS, seals[i]);
}

static int open_shared(struct region *region)
{
    region->fd = memfd_create("framed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (region->fd < 0)
        return -errno;
    int rc;
    do
        rc = -posix_fallocate(region->fd, 0, (off_t)region->bytes);
    while (rc == -EINTR);
    if (rc == 0)
        rc = map_pages(region, MAP_SHARED);
    if (rc < 0) {
        close(region->fd);
        return rc == -ENOSPC ? -ENOMEM : rc;
    }
    seal_descriptor(region->fd);
    return 0;
}

int region_open_named(struct region *ret, size_t bytes, struct shared_object *object)
{
    struct region region = {.kind = REGION_SHARED, .bytes = whole_pages(bytes), .named = true};
    const int fd = region.fd = shared_object_allocate(region.bytes);
    if (fd < 0)
        return fd;
    int rc = map_pages(&region, MAP_SHARED);
    if (rc == 0) {
        rc = shared_object_publish(object, fd, region.bytes, &region.fd);
        if (rc < 0)
            munmap(region.base, region.bytes);
    }
    if (rc < 0)
        close(fd);
    else
        *ret = region;
    return rc;
}

static int open_device(struct region *region, const struct backend_driver *driver,
                       struct backend *backend)
{
    if (!driver || !driver->export_open)
        return -ENOTSUP;
    const enum export_kind kind =
        region->kind == REGION_DEVICE_IPC ? EXPORT_IPC : EXPORT_DESCRIPTOR;
    int rc = driver->export_open(backend, &region->device, kind, region->bytes);
    if (rc < 0)
        return rc;
    region->base = region->device.address;
    region->bytes = region->device.bytes;
    region->fd = region->device.fd;
    region->memory = MEMORY_CUDA;
    region->driver = driver;
    region->backend = backend;
    memcpy(region->uuid, region->device.uuid, sizeof region->uuid);
    memcpy(region->handle, region->device.handle, sizeof region->handle);
    return 0;
}

int region_open(struct region *ret, enum region_kind kind, size_t bytes,
                const struct backend_driver *driver, struct backend *backend)
{
    struct region region = {.kind = kind, .bytes = whole_pages(bytes), .fd = -1};
    int rc = region_is_on_device(kind) ? open_device(&region, driver, backend)
             : kind == REGION_SHARED   ? open_shared(&region)
                                       : open_private(&region);
    if (rc == 0)
        *ret = region;
    return rc;
}

void region_close(struct region *region)
{
    if (!region->base)
        return;
    if (region_is_on_device(region->kind)) {
        region->driver->export_close(region->backend, &region->device);
    } else {
        region_unpin(region);
        munmap(region->base, region->bytes);
        if (region->fd >= 0)
            close(region->fd);
    }
    *region = (struct region){.fd = -1};
}

void region_pin(struct region *region, const struct backend_driver *driver, struct backend *backend)
{
    const int rc = driver->pin(backend, region->base, region->bytes);
    region_unpin(region);
    if (rc < 0)
        return;
    region->memory = MEMORY_PINNED;
    region->driver = driver;
    region->backend = backend;
}

void region_unpin(struct region *region)
{
    if (region->memory != MEMORY_PINNED)
        return;
    region->driver->unpin(region->backend, region->base);
    region->memory = MEMORY_HOST;
    region->driver = NULL;
    region->backend = NULL;
}
