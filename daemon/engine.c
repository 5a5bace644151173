#include "daemon/engine.h"

#include <errno.h>
#include <string.h>

#include "daemon/service/log.h"

static int open_driver(struct engine *engine, const struct config *config,
                       const struct backend_driver *driver)
{
    struct backend_options options = {
        .workers = config->cpu.workers,
        .device = config->cuda.device,
        .streams = config->cuda.streams,
        .band_bytes = (size_t)config->cuda.band.n,
    };
    int rc = driver->open(&engine->backend, &options);
    if (rc < 0)
        return rc;
    engine->driver = driver;
    log_event(LOG_LEVEL_INFO, "backend %s: %s", driver->name, driver->describe(engine->backend));
    return 0;
}

static int open_backend(struct engine *engine, const struct config *config)
{
    int rc = -ENODEV;
    if (config->backend != BACKEND_CPU) {
#ifdef FRAMED_CUDA
        rc = open_driver(engine, config, &cuda_backend);
        const char *why = strerror(-rc);
#else
        const char *why = "built without CUDA";
#endif
        if (rc == 0)
            return 0;
        if (config->backend == BACKEND_CUDA) {
            log_event(LOG_LEVEL_ERROR, "backend cuda is demanded but missing: %s", why);
            return -ENODEV;
        }
    }
    rc = open_driver(engine, config, &cpu_backend);
    if (rc < 0)
        log_event(LOG_LEVEL_ERROR, "backend cpu: %s", strerror(-rc));
    return rc;
}

// NVDEC is worth it where frames may stay on the device; elsewhere only where a camera demands it.
static int open_device(struct engine *engine, const struct config *config)
{
    bool useful = false;
    const char *demanding = NULL;
    for (int i = 0; i < config->n_cameras; i++) {
        useful |= config->cameras[i].decode != DECODE_CPU && engine->driver->takes_cuda;
        if (config->cameras[i].decode == DECODE_NVDEC)
            demanding = config->cameras[i].name;
    }
    if (!useful && !demanding)
        return 0;
    int rc = decode_device_open(&engine->device, config->cuda.device);
    if (rc == 0 || !demanding)
        return 0;
    log_camera(demanding);
    log_event(LOG_LEVEL_ERROR, "NVDEC is demanded but missing: %s", strerror(-rc));
    log_camera(NULL);
    return -ENODEV;
}

int engine_open(struct engine *engine, const struct config *config)
{
    int rc = open_backend(engine, config);
    return rc < 0 ? rc : open_device(engine, config);
}

void engine_close(struct engine *engine)
{
    decode_device_close(engine->device);
    if (engine->driver)
        engine->driver->close(engine->backend);
    *engine = (struct engine){0};
}
