#include "daemon/device/device.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/device/budget.h"

void device_prepare(struct device *side, const struct config *config,
                    const struct backend_driver *driver)
{
    side->config = config;
    side->driver = driver;
    side->options = (struct backend_options){
        .workers = config->cpu.workers,
        .pin = config->cpu.pin,
        .device = config->cuda.device,
        .streams = config->cuda.streams,
        .band_bytes = (size_t)config->cuda.band.n,
    };
}

size_t device_memory_bytes(const struct device *side)
{
    return side->driver->device_bytes ? side->driver->device_bytes(side->backend) : 0;
}

int device_open(struct device *side)
{
    int rc = side->driver->open(&side->backend, &side->options);
    if (rc < 0) {
        side->backend = NULL;
        return rc;
    }
    side->limit = SIZE_MAX;
    if (side->driver->device_bytes)
        side->limit = budget_limit(side->config, device_memory_bytes(side));
    log_event(LOG_LEVEL_INFO, "backend %s: %s", side->driver->name,
              side->driver->describe(side->backend));
    return 0;
}

static const char *camera_that_demands_nvdec(const struct config *config)
{
    for (int i = 0; i < config->n_cameras; i++)
        if (config->cameras[i].decode == DECODE_NVDEC)
            return config->cameras[i].name;
    return NULL;
}

// NVDEC is worth it where frames may stay on the device; elsewhere only where a camera demands it.
static bool wants_nvdec(const struct device *side, const struct config *config)
{
    for (int i = 0; i < config->n_cameras; i++)
        if (budget_wants_nvdec(&config->cameras[i], side->driver))
            return true;
    return false;
}

static int open_device(struct device *side)
{
    return decode_device_open(&side->device, side->options.device, side->config->cuda.decoders);
}

int device_add_nvdec(struct device *side, const struct config *config, const char **demanding)
{
    *demanding = camera_that_demands_nvdec(config);
    if (side->nvdec || !wants_nvdec(side, config))
        return 0;
    if (side->failed)
        side->nvdec_wanted = true;
    else
        side->nvdec = open_device(side) == 0;
    return side->nvdec || side->nvdec_wanted || !*demanding ? 0 : -ENODEV;
}

int device_add_wanted(struct device *side)
{
    if (!side->nvdec_wanted)
        return 0;
    side->nvdec_wanted = false;
    side->nvdec = open_device(side) == 0;
    return side->nvdec ? 0 : -ENODEV;
}

int device_reopen(struct device *side)
{
    int rc = device_open(side);
    if (rc == 0 && side->nvdec)
        rc = open_device(side);
    if (rc < 0)
        device_close(side);
    return rc;
}

void device_close(struct device *side)
{
    decode_device_close(side->device);
    if (side->backend)
        side->driver->close(side->backend);
    side->device = NULL;
    side->backend = NULL;
}

int device_reserve(struct device *side, size_t bytes, size_t *left)
{
    size_t reserved = atomic_load(&side->reserved);
    do {
        *left = side->limit - reserved;
        if (bytes > *left)
            return -ENOSPC;
    } while (!atomic_compare_exchange_weak(&side->reserved, &reserved, reserved + bytes));
    return 0;
}
