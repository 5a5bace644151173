// A backend that computes nothing: it only counts pins and exports.
#ifndef FRAMED_TESTS_DAEMON_FAKE_DRIVER_H
#define FRAMED_TESTS_DAEMON_FAKE_DRIVER_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "kernels/backend.h"

static _Atomic int pinned, exports, exports_written;
static int pin_refusal;     // error that pinning returns
static bool device_is_full; // for exports
static _Alignas(4096) uint8_t device_memory[1 << 16];

static inline int fake_pin(struct backend *backend, void *memory, size_t bytes)
{
    (void)backend, (void)memory, (void)bytes;
    pinned += pin_refusal == 0;
    return pin_refusal;
}

static inline void fake_unpin(struct backend *backend, void *memory)
{
    (void)backend, (void)memory;
    pinned--;
}

static inline int fake_export(struct backend *backend, struct device_export *ret,
                              enum export_kind kind, size_t bytes)
{
    (void)backend;
    if (device_is_full || bytes > sizeof device_memory)
        return -ENOMEM;
    exports++;
    *ret = (struct device_export){.kind = kind,
                                  .address = device_memory,
                                  .bytes = sizeof device_memory,
                                  .fd = -1,
                                  .uuid = "the-uuid-of-it."};
    if (kind == EXPORT_IPC)
        memcpy(ret->handle, "the handle of it", 17);
    else
        ret->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return 0;
}

static inline void fake_unexport(struct backend *backend, struct device_export *device)
{
    (void)backend;
    if (device->fd >= 0)
        close(device->fd);
    exports--;
}

static inline int fake_export_write(struct backend *backend, void *to, const void *from,
                                    size_t bytes)
{
    (void)backend;
    memcpy(to, from, bytes);
    exports_written++;
    return 0;
}

static const struct backend_driver fake_driver = {
    .pin = fake_pin,
    .unpin = fake_unpin,
    .export_open = fake_export,
    .export_close = fake_unexport,
    .export_write = fake_export_write,
};

#endif
