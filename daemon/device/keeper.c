#include "daemon/device/device_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/device/budget.h"

enum { LOGGED_REOPEN_TRIES = 2 };                          // logged failures to reopen a GPU
static const int64_t STEADY_NS = 60 * INT64_C(1000000000); // a GPU that worked this long is well
static const int64_t NEVER_NS = INT64_MAX;

// --- opening and closing a device

static void begin_busy(struct devices *devices, struct device *device)
{
    device->busy = true;
    pthread_mutex_unlock(&devices->lock);
}

static void end_busy(struct devices *devices, struct device *device)
{
    pthread_mutex_lock(&devices->lock);
    device->busy = false;
    pthread_cond_broadcast(&devices->changed);
}

int device_open_backend(struct devices *devices, struct device *device)
{
    const struct backend_driver *driver = device->driver;
    struct backend *backend = NULL;
    size_t memory = 0;
    begin_busy(devices, device);
    const int rc = driver->open(&backend, &device->options);
    if (rc == 0) {
        memory = driver->device_bytes ? driver->device_bytes(backend) : 0;
        log_event(LOG_LEVEL_INFO, "backend %s: %s", device->label, driver->describe(backend));
    }
    end_busy(devices, device);
    if (rc == 0) {
        device->backend = backend;
        device->memory = memory;
        device->limit = driver->device_bytes ? budget_limit(devices->config, memory) : SIZE_MAX;
        if (driver->device_uuid)
            memcpy(device->uuid, driver->device_uuid(backend), sizeof device->uuid);
    }
    return rc;
}

int device_open_nvdec(struct devices *devices, struct device *device)
{
    struct decode_device *nvdec = NULL;
    begin_busy(devices, device);
    const int rc =
        decode_device_open(&nvdec, device->options.device, devices->config->cuda.decoders);
    end_busy(devices, device);
    if (rc == 0) {
        device->nvdec = nvdec;
        device->has_nvdec = true;
    }
    return rc;
}

void device_shut_down(struct devices *devices, struct device *device)
{
    struct decode_device *const nvdec = device->nvdec;
    struct backend *const backend = device->backend;
    device->nvdec = NULL;
    device->backend = NULL;
    begin_busy(devices, device);
    decode_device_close(nvdec);
    if (backend)
        device->driver->close(backend);
    end_busy(devices, device);
}

// --- the keeper

// Delays the next try for a GPU that fails soon after each opening.
static void plan_next_try(struct device *gpu)
{
    const int64_t now_ns = monotonic_ns();
    if (gpu->opened_ns && now_ns - gpu->opened_ns > STEADY_NS)
        retry_reset(&gpu->backoff);
    gpu->opened_ns = 0;
    gpu->next_try_ns = now_ns + retry_next_ns(&gpu->backoff, false);
}

static void close_failed(struct devices *devices, struct device *gpu)
{
    device_shut_down(devices, gpu);
    begin_busy(devices, gpu);
    if (gpu->driver->reset)
        gpu->driver->reset(&gpu->options);
    end_busy(devices, gpu);
    gpu->failed_tries = 0;
    plan_next_try(gpu);
}

static void reopen(struct devices *devices, struct device *gpu)
{
    bool nvdec_missing = false;
    int rc = device_open_backend(devices, gpu);
    if (rc == 0 && gpu->has_nvdec)
        rc = device_open_nvdec(devices, gpu);
    if (rc < 0) {
        device_shut_down(devices, gpu);
        plan_next_try(gpu);
        if (gpu->failed_tries++ < LOGGED_REOPEN_TRIES)
            log_event(LOG_LEVEL_WARNING, "backend %s cannot be opened again: %s%s", gpu->label,
                      strerror(-rc),
                      gpu->failed_tries == LOGGED_REOPEN_TRIES
                          ? "; later tries are not logged (a restart of framed may bring it back)"
                          : "");
        return;
    }
    while (gpu->nvdec_wanted) {
        gpu->nvdec_wanted = false;
        nvdec_missing = !gpu->has_nvdec && device_open_nvdec(devices, gpu) < 0;
    }
    gpu->opened_ns = monotonic_ns();
    atomic_store(&gpu->failed, false);
    log_event(LOG_LEVEL_INFO, "backend %s is back", gpu->label);
    if (nvdec_missing)
        log_event(LOG_LEVEL_WARNING, "backend %s has no NVDEC: the cpu goes on decoding",
                  gpu->label);
}

// True if there was something to do; the lock was released meanwhile. Else *wake_ns becomes no
// later than the device's next try.
static bool tend_device(struct devices *devices, struct device *device, int64_t *wake_ns)
{
    if (device->n_leases > 0 || device->busy)
        return false;
    if (!atomic_load(&device->failed)) {
        const bool idle =
            device->backend && device == device_cpu(devices) && devices_have_gpu(devices);
        if (idle)
            device_shut_down(devices, device);
        return idle;
    }
    if (device->backend) {
        close_failed(devices, device);
        return true;
    }
    if (monotonic_ns() >= device->next_try_ns) {
        reopen(devices, device);
        return true;
    }
    if (device->next_try_ns < *wake_ns)
        *wake_ns = device->next_try_ns;
    return false;
}

static void *keep_devices(void *opaque)
{
    struct devices *devices = opaque;
    pthread_mutex_lock(&devices->lock);
    while (!devices->closing) {
        int64_t wake_ns = NEVER_NS;
        bool tended = false;
        for (int i = 0; i <= devices->n_gpus && !devices->closing; i++)
            tended |= tend_device(devices, &devices->device[i], &wake_ns);
        const struct timespec wake = {.tv_sec = wake_ns / 1000000000,
                                      .tv_nsec = wake_ns % 1000000000};
        if (!tended && !devices->closing)
            pthread_cond_timedwait(&devices->changed, &devices->lock, &wake);
    }
    pthread_mutex_unlock(&devices->lock);
    return NULL;
}

int devices_start_keeper(struct devices *devices)
{
    int rc = -pthread_create(&devices->keeper, NULL, keep_devices, devices);
    devices->has_keeper = rc == 0;
    if (rc < 0)
        log_event(LOG_LEVEL_ERROR, "backend: no thread: %s", strerror(-rc));
    return rc;
}
