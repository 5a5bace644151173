// What the daemon computes with: the backend that runs kernels, and the device that decodes.
#ifndef FRAMED_DAEMON_ENGINE_H
#define FRAMED_DAEMON_ENGINE_H

#include "config/config.h"
#include "daemon/camera/decode.h"
#include "kernels/backend.h"

struct engine {
    const struct backend_driver *driver; // NULL: not open
    struct backend *backend;
    struct decode_device *device; // NULL: no NVDEC
};

// Opens what the configuration wants and this box has, and logs it. Returns 0, -ENODEV where a
// device that the configuration demands is missing, or other negative errno; the reason is logged.
int engine_open(struct engine *, const struct config *);
void engine_close(struct engine *); // after every camera; accepts a zeroed or half-open one

#endif
