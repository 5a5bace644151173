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
#include "daemon/device/device.h"
#include "daemon/device/pinning.h"
#include "daemon/input/retry.h"

enum { TOLD = 2 }; // tries in vain to open a side again that are logged
static const int64_t STEADY_NS = 60 * INT64_C(1000000000); // a side that works for so long is well

struct devices {
    const struct config *config;
    struct device cuda, cpu;
    struct device *_Atomic current;
    _Atomic uint64_t fallbacks;
    pthread_mutex_t lock;   // users, failed, closing, and opening and closing of the cpu side
    pthread_cond_t changed; // any of it
    bool closing;
    pthread_t keeper; // runs keep()
    bool has_keeper;
    struct retry backoff; // the keeper's own, like the time when it opened the cuda side
    int64_t opened_ns;
};

// --- the cuda side's way back, on the keeper's thread

// Waits before the next try; false: the engine closes. A side that fails soon after each opening is
// not opened at once again.
static bool wait_to_reopen(struct devices *engine)
{
    if (engine->opened_ns && monotonic_ns() - engine->opened_ns > STEADY_NS)
        retry_reset(&engine->backoff);
    engine->opened_ns = 0;
    int64_t due = monotonic_ns() + retry_next_ns(&engine->backoff, false);
    struct timespec until = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
    pthread_mutex_lock(&engine->lock);
    while (!engine->closing && pthread_cond_timedwait(&engine->changed, &engine->lock, &until) == 0)
        ;
    bool closing = engine->closing;
    pthread_mutex_unlock(&engine->lock);
    return !closing;
}

static void take_over(struct devices *engine)
{
    engine->opened_ns = monotonic_ns();
    pthread_mutex_lock(&engine->lock);
    engine->cuda.failed = false;
    const bool nvdec_missing = device_add_wanted(&engine->cuda) < 0;
    atomic_store(&engine->current, &engine->cuda);
    pthread_mutex_unlock(&engine->lock);
    log_event(LOG_LEVEL_INFO, "backend %s is back", engine->cuda.driver->name);
    if (nvdec_missing)
        log_event(LOG_LEVEL_WARNING, "NVDEC is missing: the cpu goes on decoding");
}

// Nobody uses the cuda side, and while it counts as failed nobody can begin to.
static void mend(struct devices *engine)
{
    struct device *side = &engine->cuda;
    device_close(side);
    if (side->driver->reset)
        side->driver->reset(&side->options);
    for (int failures = 0; wait_to_reopen(engine); failures++) {
        int rc = device_reopen(side);
        if (rc == 0) {
            take_over(engine);
            return;
        }
        if (failures < TOLD)
            log_event(LOG_LEVEL_WARNING, "backend %s cannot be opened again: %s%s",
                      side->driver->name, strerror(-rc),
                      failures == TOLD - 1
                          ? "; trying on without a word (a restart of framed may bring it back)"
                          : "");
    }
}

static bool cpu_is_idle(struct devices *engine)
{
    return engine->cpu.backend && engine->cpu.users == 0 &&
           atomic_load(&engine->current) != &engine->cpu;
}

static void *keep(void *opaque)
{
    struct devices *engine = opaque;
    pthread_mutex_lock(&engine->lock);
    while (!engine->closing) {
        if (engine->cuda.failed && engine->cuda.users == 0) {
            pthread_mutex_unlock(&engine->lock);
            mend(engine);
            pthread_mutex_lock(&engine->lock);
        } else if (cpu_is_idle(engine)) {
            device_close(&engine->cpu);
        } else {
            pthread_cond_wait(&engine->changed, &engine->lock);
        }
    }
    pthread_mutex_unlock(&engine->lock);
    return NULL;
}

// --- from the start to the end

// The side to start with.
static int choose(struct devices *engine)
{
    const struct config *config = engine->config;
    struct device *side = &engine->cuda;
    int rc = -ENODEV;
    if (config->backend != BACKEND_CPU) {
        if (side->driver)
            rc = device_open(side);
        if (rc < 0 && config->backend == BACKEND_CUDA) {
            log_event(LOG_LEVEL_ERROR, "backend cuda is demanded but missing: %s",
                      side->driver ? strerror(-rc) : "built without CUDA");
            return -ENODEV;
        }
    }
    if (rc < 0) {
        side = &engine->cpu;
        rc = device_open(side);
        if (rc < 0)
            log_event(LOG_LEVEL_ERROR, "backend cpu: %s", strerror(-rc));
    }
    atomic_store(&engine->current, side);
    return rc;
}

static int start_keeper(struct devices *engine)
{
    int rc = -pthread_create(&engine->keeper, NULL, keep, engine);
    engine->has_keeper = rc == 0;
    if (rc < 0)
        log_event(LOG_LEVEL_ERROR, "backend: no thread: %s", strerror(-rc));
    return rc;
}

static int add_nvdec(struct device *side, const struct config *config)
{
    const char *demanding;
    int rc = device_add_nvdec(side, config, &demanding);
    if (rc < 0) {
        log_camera(demanding);
        log_event(LOG_LEVEL_ERROR, "NVDEC is demanded but missing");
        log_camera(NULL);
    }
    return rc;
}

int devices_open_with(struct devices **ret, const struct config *config,
                      const struct backend_driver *cuda, const struct backend_driver *cpu)
{
    pthread_condattr_t attributes;
    struct devices *engine = calloc(1, sizeof *engine);
    if (!engine) {
        log_event(LOG_LEVEL_ERROR, "backend: %s", strerror(ENOMEM));
        return -ENOMEM;
    }
    engine->config = config;
    device_prepare(&engine->cuda, config, cuda);
    device_prepare(&engine->cpu, config, cpu);
    pthread_mutex_init(&engine->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&engine->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    int rc = choose(engine);
    if (rc == 0)
        rc = add_nvdec(atomic_load(&engine->current), config);
    if (rc == 0 && atomic_load(&engine->current) == &engine->cuda)
        rc = start_keeper(engine);
    if (rc < 0) {
        devices_close(engine);
        return rc;
    }
    *ret = engine;
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
    const struct backend_driver *cuda = NULL;
#ifdef FRAMED_CUDA
    cuda = &cuda_backend;
#endif
    warn_of_pin(config);
    return devices_open_with(ret, config, cuda, &cpu_backend);
}

static void tell_of_cpu(const char *demanding)
{
    log_camera(demanding);
    log_event(LOG_LEVEL_WARNING,
              "NVDEC is demanded and its device has failed: the cpu decodes until it is back");
    log_camera(NULL);
}

// Where the device has failed and is to come back, it brings NVDEC with it; until then nothing may
// hold anything of it.
int devices_admit(struct devices *engine, const struct config *config, char *why, size_t size)
{
    const char *demanding;
    pthread_mutex_lock(&engine->lock);
    struct device *side = atomic_load(&engine->current);
    const bool failed = engine->cuda.failed;
    int rc = device_add_nvdec(failed ? &engine->cuda : side, config, &demanding);
    const size_t device_bytes = device_memory_bytes(side); // here, or it may close meanwhile
    pthread_mutex_unlock(&engine->lock);
    if (rc < 0) {
        snprintf(why, size, "NVDEC, which camera %s demands, is missing", demanding);
        return rc;
    }
    rc = budget_check(config, side->driver, side->nvdec, device_bytes, why, size);
    if (rc == 0 && failed && demanding)
        tell_of_cpu(demanding);
    return rc;
}

void devices_close(struct devices *engine)
{
    if (!engine)
        return;
    pthread_mutex_lock(&engine->lock);
    engine->closing = true;
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->lock);
    if (engine->has_keeper)
        pthread_join(engine->keeper, NULL);
    device_close(&engine->cuda);
    device_close(&engine->cpu);
    pthread_cond_destroy(&engine->changed);
    pthread_mutex_destroy(&engine->lock);
    free(engine);
}

// --- users

int devices_join(struct devices *engine, struct device_lease *ret, bool cpu_only)
{
    pthread_mutex_lock(&engine->lock);
    struct device *side = cpu_only ? &engine->cpu : atomic_load(&engine->current);
    int rc = side->backend ? 0 : device_open(side); // the cpu's
    if (rc == 0) {
        side->users++;
        *ret = (struct device_lease){.side = side,
                                     .driver = side->driver,
                                     .backend = side->backend,
                                     .device = side->device,
                                     .cpu_only = cpu_only};
    }
    pthread_mutex_unlock(&engine->lock);
    return rc;
}

void devices_watch(struct devices *engine, struct device_lease *use, void (*failed)(void *),
                   void *opaque)
{
    struct device *side = use->side;
    use->failed = failed;
    use->opaque = opaque;
    pthread_mutex_lock(&engine->lock);
    use->next = side->watchers;
    side->watchers = use;
    if (side->failed)
        failed(opaque);
    pthread_mutex_unlock(&engine->lock);
}

static void unwatch(struct device_lease *use)
{
    struct device_lease **link = &use->side->watchers;
    while (*link && *link != use)
        link = &(*link)->next;
    if (*link)
        *link = use->next;
}

void devices_leave(struct devices *engine, struct device_lease *use)
{
    if (!use->side)
        return;
    pthread_mutex_lock(&engine->lock);
    unwatch(use);
    if (--use->side->users == 0)
        pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->lock);
    *use = (struct device_lease){0};
}

bool devices_stale(const struct devices *engine, const struct device_lease *use)
{
    return use->side && !use->cpu_only && use->side != atomic_load(&engine->current);
}

void devices_failed(struct devices *engine, const struct device_lease *use, int error)
{
    struct device *side = use->side;
    if (side == &engine->cpu) {
        log_event(LOG_LEVEL_ERROR, "backend %s failed: %s", side->driver->name, strerror(-error));
        return;
    }
    pthread_mutex_lock(&engine->lock);
    bool first = !side->failed;
    side->failed = true;
    atomic_store(&engine->current, &engine->cpu);
    pthread_cond_broadcast(&engine->changed);
    for (struct device_lease *user = side->watchers; first && user; user = user->next)
        user->failed(user->opaque);
    pthread_mutex_unlock(&engine->lock);
    if (!first)
        return;
    atomic_fetch_add(&engine->fallbacks, 1);
    log_event(LOG_LEVEL_ERROR, "backend %s failed: %s; %s takes over", side->driver->name,
              strerror(-error), engine->cpu.driver->name);
}

int devices_reserve(struct devices *engine, const struct device_lease *use, size_t bytes,
                    size_t *left)
{
    (void)engine;
    return device_reserve(use->side, bytes, left);
}

void devices_unreserve(struct devices *engine, const struct device_lease *use, size_t bytes)
{
    (void)engine;
    atomic_fetch_sub(&use->side->reserved, bytes);
}

const char *devices_backend_name(const struct devices *engine)
{
    return atomic_load(&engine->current)->driver->name;
}

void devices_describe(struct devices *engine, char *to, size_t size)
{
    pthread_mutex_lock(&engine->lock);
    const struct device *side = atomic_load(&engine->current);
    snprintf(to, size, "%s", side->backend ? side->driver->describe(side->backend) : "");
    pthread_mutex_unlock(&engine->lock);
}

bool devices_nvdec_busy(struct devices *engine, uint64_t *ret)
{
    pthread_mutex_lock(&engine->lock);
    struct device *side = atomic_load(&engine->current); // which is not the one that has failed
    if (side->device)
        *ret = decode_device_busy_ns(side->device);
    bool has = side->device;
    pthread_mutex_unlock(&engine->lock);
    return has;
}

bool devices_device_busy(struct devices *engine, struct device_busy *ret)
{
    pthread_mutex_lock(&engine->lock);
    const struct device *side = atomic_load(&engine->current);
    bool has = side->backend && side->driver->busy;
    if (has)
        *ret = side->driver->busy(side->backend);
    pthread_mutex_unlock(&engine->lock);
    return has;
}

void devices_memory(struct devices *engine, const struct config *config, struct devices_memory *ret)
{
    pthread_mutex_lock(&engine->lock);
    const struct device *side = atomic_load(&engine->current);
    const struct backend_driver *driver = side->driver;
    const bool nvdec = side->nvdec;
    ret->device_limit = side->backend ? side->limit : SIZE_MAX;
    pthread_mutex_unlock(&engine->lock);
    ret->need = budget_sum(config, driver, nvdec);
}

uint64_t devices_fallbacks(const struct devices *engine)
{
    return atomic_load(&engine->fallbacks);
}
