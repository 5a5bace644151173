// One side of the engine: a backend and, where it has one, the device that decodes for it. For the
// engine alone, whose lock guards what says so.
#ifndef FRAMED_DAEMON_DEVICE_DEVICE_H
#define FRAMED_DAEMON_DEVICE_DEVICE_H

#include <stdatomic.h>

#include "daemon/device/devices.h"

struct device {
    const struct config *config;
    const struct backend_driver *driver; // NULL: not in this build
    struct backend_options options;
    struct backend *backend;      // NULL: not open
    struct decode_device *device; // NULL: no NVDEC
    bool nvdec;                   // there is a device, or was before the side failed
    size_t limit;                 // of device memory
    _Atomic size_t reserved;
    // Under the engine's lock:
    int users;
    struct device_lease *watchers; // of the users
    bool failed;
    bool nvdec_wanted; // since it failed, by cameras that came
};

void device_prepare(struct device *, const struct config *, const struct backend_driver *);
int device_open(struct device *); // the backend alone; logs what it is. 0 or negative errno
// Adds NVDEC where it is of use to these cameras; to a side that has failed once it is back. 0,
// also where there is none; -ENODEV: the camera *demanding, NULL where none does, demands it.
int device_add_nvdec(struct device *, const struct config *, const char **demanding);
int device_reopen(struct device *); // with all that it had
// What was wanted meanwhile, under the engine's lock. 0 or -ENODEV: it is missing.
int device_add_wanted(struct device *);
void device_close(struct device *);
size_t device_memory_bytes(const struct device *); // that the device has; 0: there is none
int device_reserve(struct device *, size_t bytes, size_t *left);

#endif
