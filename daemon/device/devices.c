#include "daemon/device/devices.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/device/budget.h"
#include "daemon/device/pinning.h"
#include "daemon/input/retry.h"

enum {
    DEVICES_MAX = 2,         // one GPU and the CPU
    LOGGED_REOPEN_TRIES = 2, // failed tries to open a GPU again that are logged
};
static const int64_t STEADY_NS = 60 * INT64_C(1000000000); // a GPU that worked for so long is well
static const int64_t NEVER_NS = INT64_MAX;

struct device {
    const struct backend_driver *driver;
    struct backend_options options;
    _Atomic size_t reserved; // of its memory
    _Atomic bool failed;     // a GPU, until it is open again; written under the lock
    // Under the lock; `limit` stays as it is while there are leases:
    size_t memory, limit;        // bytes that it has (0: not known), and that may be used
    struct backend *backend;     // NULL: not open
    struct decode_device *nvdec; // NULL: not open
    bool has_nvdec;              // NVDEC is open, or was before the device failed
    bool nvdec_wanted;           // by cameras that came after it failed
    bool busy;                   // a thread opens or closes it, without the lock
    int n_leases;
    struct device_lease *watchers; // leases with device_on_failure
    // The keeper's, of a GPU:
    struct retry backoff;
    int64_t opened_ns, next_try_ns;
    int failed_tries;
};

struct devices {
    const struct config *config;
    struct device device[DEVICES_MAX]; // the CPU is the last
    int n;
    _Atomic uint64_t fallbacks;
    pthread_mutex_t lock;
    pthread_cond_t changed; // anything that is under the lock
    bool closing;
    pthread_t keeper; // runs keep_devices
    bool has_keeper;
};

static struct device *cpu_of(struct devices *devices)
{
    return &devices->device[devices->n - 1];
}

// The device that whoever has this wish works with now.
static struct device *choose_device(struct devices *devices, enum device_wish wish)
{
    struct device *device = wish == DEVICE_CPU ? cpu_of(devices) : devices->device;
    while (atomic_load(&device->failed)) // never the CPU
        device++;
    return device;
}

// --- opening and closing a device: under the lock, which they leave while they call the driver

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

static int open_backend(struct devices *devices, struct device *device)
{
    const struct backend_driver *driver = device->driver;
    struct backend *backend = NULL;
    size_t memory = 0;
    begin_busy(devices, device);
    const int rc = driver->open(&backend, &device->options);
    if (rc == 0) {
        memory = driver->device_bytes ? driver->device_bytes(backend) : 0;
        log_event(LOG_LEVEL_INFO, "backend %s: %s", driver->name, driver->describe(backend));
    }
    end_busy(devices, device);
    if (rc == 0) {
        device->backend = backend;
        device->memory = memory;
        device->limit = driver->device_bytes ? budget_limit(devices->config, memory) : SIZE_MAX;
    }
    return rc;
}

static int open_nvdec(struct devices *devices, struct device *device)
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

static void close_device(struct devices *devices, struct device *device)
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

// --- the keeper: closes a GPU that has failed once nobody has a lease on it, opens it again with
// back-off, and closes the CPU while nobody needs it

// A GPU that fails soon after each opening is not opened at once again.
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
    close_device(devices, gpu);
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
    int rc = open_backend(devices, gpu);
    if (rc == 0 && gpu->has_nvdec)
        rc = open_nvdec(devices, gpu);
    if (rc < 0) {
        close_device(devices, gpu);
        plan_next_try(gpu);
        if (gpu->failed_tries++ < LOGGED_REOPEN_TRIES)
            log_event(LOG_LEVEL_WARNING, "backend %s cannot be opened again: %s%s",
                      gpu->driver->name, strerror(-rc),
                      gpu->failed_tries == LOGGED_REOPEN_TRIES
                          ? "; later tries are not logged (a restart of framed may bring it back)"
                          : "");
        return;
    }
    while (gpu->nvdec_wanted) {
        gpu->nvdec_wanted = false;
        nvdec_missing = !gpu->has_nvdec && open_nvdec(devices, gpu) < 0;
    }
    gpu->opened_ns = monotonic_ns();
    atomic_store(&gpu->failed, false);
    log_event(LOG_LEVEL_INFO, "backend %s is back", gpu->driver->name);
    if (nvdec_missing)
        log_event(LOG_LEVEL_WARNING, "NVDEC is missing: the cpu goes on decoding");
}

// Whether there was something to do, in which case the lock was left. Else *wake_ns becomes no
// later than the device's next try.
static bool tend_device(struct devices *devices, struct device *device, int64_t *wake_ns)
{
    if (device->n_leases > 0 || device->busy)
        return false;
    if (!atomic_load(&device->failed)) {
        const bool idle = device->backend && device == cpu_of(devices) &&
                          choose_device(devices, DEVICE_AUTO) != device;
        if (idle)
            close_device(devices, device);
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
        for (int i = 0; i < devices->n && !devices->closing; i++)
            tended |= tend_device(devices, &devices->device[i], &wake_ns);
        const struct timespec wake = {.tv_sec = wake_ns / 1000000000,
                                      .tv_nsec = wake_ns % 1000000000};
        if (!tended && !devices->closing)
            pthread_cond_timedwait(&devices->changed, &devices->lock, &wake);
    }
    pthread_mutex_unlock(&devices->lock);
    return NULL;
}

// --- from the start to the end

static void add_device(struct devices *devices, const struct backend_driver *driver)
{
    const struct config *config = devices->config;
    devices->device[devices->n++] = (struct device){
        .driver = driver,
        .options = {.workers = config->cpu.workers,
                    .pin = config->cpu.pin,
                    .device = config->cuda.device,
                    .streams = config->cuda.streams,
                    .band_bytes = (size_t)config->cuda.band.n},
    };
}

// Keeps what opens. Without a GPU the CPU is opened at once, else when somebody needs it.
static int add_devices(struct devices *devices, const struct backend_driver *gpu,
                       const struct backend_driver *cpu)
{
    const enum backend_kind wanted = devices->config->backend;
    int rc = -ENODEV;
    if (wanted != BACKEND_CPU && gpu) {
        add_device(devices, gpu);
        rc = open_backend(devices, devices->device);
        devices->n = rc == 0;
    }
    if (rc < 0 && wanted == BACKEND_CUDA) {
        log_event(LOG_LEVEL_ERROR, "backend cuda is demanded but missing: %s",
                  gpu ? strerror(-rc) : "built without CUDA");
        return -ENODEV;
    }
    add_device(devices, cpu);
    if (rc < 0) {
        rc = open_backend(devices, devices->device);
        if (rc < 0)
            log_event(LOG_LEVEL_ERROR, "backend cpu: %s", strerror(-rc));
    }
    return rc;
}

static const char *camera_that_demands_nvdec(const struct config *config)
{
    for (int i = 0; i < config->n_cameras; i++)
        if (config->cameras[i].decode == DECODE_NVDEC)
            return config->cameras[i].name;
    return NULL;
}

// NVDEC is worth it where frames may stay on the device; elsewhere only where a camera demands it.
// 0, also where it will be opened with a GPU that is to come back; -ENODEV: the camera *demanding,
// NULL where none does, demands it and it is missing.
static int add_nvdec(struct devices *devices, const struct config *config, const char **demanding)
{
    struct device *device = devices->device;
    bool wanted = false;
    int rc = 0;
    *demanding = camera_that_demands_nvdec(config);
    for (int i = 0; i < config->n_cameras; i++)
        wanted |= budget_wants_nvdec(&config->cameras[i], device->driver);
    while (device->busy && !atomic_load(&device->failed))
        pthread_cond_wait(&devices->changed, &devices->lock);
    if (wanted && !device->has_nvdec && atomic_load(&device->failed))
        device->nvdec_wanted = true;
    else if (wanted && !device->has_nvdec)
        rc = open_nvdec(devices, device);
    return *demanding ? rc : 0;
}

static int start_keeper(struct devices *devices)
{
    int rc = -pthread_create(&devices->keeper, NULL, keep_devices, devices);
    devices->has_keeper = rc == 0;
    if (rc < 0)
        log_event(LOG_LEVEL_ERROR, "backend: no thread: %s", strerror(-rc));
    return rc;
}

int devices_open_with(struct devices **ret, const struct config *config,
                      const struct backend_driver *gpu, const struct backend_driver *cpu)
{
    pthread_condattr_t attributes;
    const char *demanding;
    struct devices *devices = calloc(1, sizeof *devices);
    if (!devices) {
        log_event(LOG_LEVEL_ERROR, "backend: %s", strerror(ENOMEM));
        return -ENOMEM;
    }
    devices->config = config;
    pthread_mutex_init(&devices->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&devices->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_lock(&devices->lock);
    int rc = add_devices(devices, gpu, cpu);
    if (rc == 0) {
        rc = add_nvdec(devices, config, &demanding);
        if (rc < 0) {
            log_camera(demanding);
            log_event(LOG_LEVEL_ERROR, "NVDEC is demanded but missing");
            log_camera(NULL);
        }
    }
    pthread_mutex_unlock(&devices->lock);
    if (rc == 0 && devices->n > 1)
        rc = start_keeper(devices);
    if (rc < 0) {
        devices_close(devices);
        return rc;
    }
    *ret = devices;
    return 0;
}

static void warn_of_pin(const struct config *config)
{
    char *rest = pinning_left_out(config);
    if (rest)
        log_event(LOG_LEVEL_WARNING, "%s", rest);
    free(rest);
}

int devices_open(struct devices **ret, const struct config *config)
{
    const struct backend_driver *gpu = NULL;
#ifdef FRAMED_CUDA
    gpu = &cuda_backend;
#endif
    warn_of_pin(config);
    return devices_open_with(ret, config, gpu, &cpu_backend);
}

void devices_close(struct devices *devices)
{
    if (!devices)
        return;
    pthread_mutex_lock(&devices->lock);
    devices->closing = true;
    pthread_cond_broadcast(&devices->changed);
    pthread_mutex_unlock(&devices->lock);
    if (devices->has_keeper)
        pthread_join(devices->keeper, NULL);
    pthread_mutex_lock(&devices->lock);
    for (int i = 0; i < devices->n; i++)
        close_device(devices, &devices->device[i]);
    pthread_mutex_unlock(&devices->lock);
    pthread_cond_destroy(&devices->changed);
    pthread_mutex_destroy(&devices->lock);
    free(devices);
}

int devices_provide(struct devices *devices, const struct config *config, char *why, size_t size)
{
    const char *demanding;
    pthread_mutex_lock(&devices->lock);
    const int rc = add_nvdec(devices, config, &demanding);
    pthread_mutex_unlock(&devices->lock);
    if (rc < 0)
        snprintf(why, size, "NVDEC, which camera %s demands, is missing", demanding);
    return rc;
}

int devices_admit(struct devices *devices, const struct config *config, char *why, size_t size)
{
    pthread_mutex_lock(&devices->lock);
    const struct device *device = choose_device(devices, DEVICE_AUTO);
    const struct backend_driver *driver = device->driver;
    const bool nvdec = device->has_nvdec, fell_back = device != devices->device;
    const size_t memory = device->memory;
    pthread_mutex_unlock(&devices->lock);
    const int rc = budget_check(config, driver, nvdec, memory, why, size);
    const char *demanding = rc == 0 && fell_back ? camera_that_demands_nvdec(config) : NULL;
    if (demanding) {
        log_camera(demanding);
        log_event(LOG_LEVEL_WARNING,
                  "NVDEC is demanded and its device has failed: the cpu decodes until it is back");
        log_camera(NULL);
    }
    return rc;
}

// --- leases

int device_acquire(struct devices *devices, enum device_wish wish, struct device_lease *ret)
{
    struct device *device;
    int rc = 0;
    pthread_mutex_lock(&devices->lock);
    while ((device = choose_device(devices, wish))->busy)
        pthread_cond_wait(&devices->changed, &devices->lock);
    if (!device->backend) // the CPU's
        rc = open_backend(devices, device);
    if (rc == 0) {
        device->n_leases++;
        *ret = (struct device_lease){
            .device = device,
            .driver = device->driver,
            .backend = device->backend,
            .nvdec = device->nvdec,
            .devices = devices,
            .wish = wish,
        };
    }
    pthread_mutex_unlock(&devices->lock);
    return rc;
}

void device_on_failure(struct device_lease *lease, void (*failed)(void *), void *opaque)
{
    struct device *device = lease->device;
    lease->failed = failed;
    lease->opaque = opaque;
    pthread_mutex_lock(&lease->devices->lock);
    lease->next = device->watchers;
    device->watchers = lease;
    if (atomic_load(&device->failed))
        failed(opaque);
    pthread_mutex_unlock(&lease->devices->lock);
}

void device_release(struct device_lease *lease)
{
    struct devices *devices = lease->devices;
    if (!lease->device)
        return;
    pthread_mutex_lock(&devices->lock);
    struct device_lease **link = &lease->device->watchers;
    while (*link && *link != lease)
        link = &(*link)->next;
    if (*link)
        *link = lease->next;
    if (--lease->device->n_leases == 0)
        pthread_cond_broadcast(&devices->changed);
    pthread_mutex_unlock(&devices->lock);
    *lease = (struct device_lease){0};
}

bool device_is_stale(const struct device_lease *lease)
{
    return lease->device && lease->device != choose_device(lease->devices, lease->wish);
}

void device_failed(const struct device_lease *lease, int error)
{
    struct devices *devices = lease->devices;
    struct device *device = lease->device;
    const char *name = device->driver->name;
    if (device == cpu_of(devices)) {
        log_event(LOG_LEVEL_ERROR, "backend %s failed: %s", name, strerror(-error));
        return;
    }
    pthread_mutex_lock(&devices->lock);
    const bool first = !atomic_exchange(&device->failed, true);
    pthread_cond_broadcast(&devices->changed);
    for (struct device_lease *other = device->watchers; first && other; other = other->next)
        other->failed(other->opaque);
    pthread_mutex_unlock(&devices->lock);
    if (!first)
        return;
    atomic_fetch_add(&devices->fallbacks, 1);
    log_event(LOG_LEVEL_ERROR, "backend %s failed: %s; %s takes over", name, strerror(-error),
              choose_device(devices, DEVICE_AUTO)->driver->name);
}

int device_reserve(const struct device_lease *lease, size_t bytes, size_t *left)
{
    struct device *device = lease->device;
    size_t reserved = atomic_load(&device->reserved);
    do {
        *left = device->limit - reserved;
        if (bytes > *left)
            return -ENOSPC;
    } while (!atomic_compare_exchange_weak(&device->reserved, &reserved, reserved + bytes));
    return 0;
}

void device_unreserve(const struct device_lease *lease, size_t bytes)
{
    atomic_fetch_sub(&lease->device->reserved, bytes);
}

// --- status and metrics

const char *devices_backend_name(struct devices *devices)
{
    return choose_device(devices, DEVICE_AUTO)->driver->name;
}

void devices_describe(struct devices *devices, char *to, size_t size)
{
    pthread_mutex_lock(&devices->lock);
    const struct device *device = choose_device(devices, DEVICE_AUTO);
    snprintf(to, size, "%s", device->backend ? device->driver->describe(device->backend) : "");
    pthread_mutex_unlock(&devices->lock);
}

bool devices_nvdec_busy(struct devices *devices, uint64_t *ret)
{
    pthread_mutex_lock(&devices->lock);
    struct decode_device *nvdec = choose_device(devices, DEVICE_AUTO)->nvdec;
    if (nvdec)
        *ret = decode_device_busy_ns(nvdec);
    pthread_mutex_unlock(&devices->lock);
    return nvdec;
}

bool devices_device_busy(struct devices *devices, struct device_busy *ret)
{
    pthread_mutex_lock(&devices->lock);
    const struct device *device = choose_device(devices, DEVICE_AUTO);
    const bool has = device->backend && device->driver->busy;
    if (has)
        *ret = device->driver->busy(device->backend);
    pthread_mutex_unlock(&devices->lock);
    return has;
}

void devices_memory(struct devices *devices, const struct config *config,
                    struct devices_memory *ret)
{
    pthread_mutex_lock(&devices->lock);
    const struct device *device = choose_device(devices, DEVICE_AUTO);
    const struct backend_driver *driver = device->driver;
    const bool nvdec = device->has_nvdec;
    ret->device_limit = device->backend ? device->limit : SIZE_MAX;
    pthread_mutex_unlock(&devices->lock);
    ret->need = budget_sum(config, driver, nvdec);
}

uint64_t devices_fallbacks(const struct devices *devices)
{
    return atomic_load(&devices->fallbacks);
}
