// The memory of a pool: its regions, and the backends that pin or hold them. Mapping and
// page-locking are slow and never done under `lock`. The list of regions changes under both locks:
// either is enough to walk it.
#include <errno.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/output/pool.h"

static const int64_t RETRY_NS = 1000000000; // between tries to get memory

// memory_lock held.
static void close_unused_regions(struct pool *pool)
{
    struct pool_region *unused = NULL;
    pthread_mutex_lock(&pool->lock);
    for (struct pool_region **link = &pool->regions; *link;) {
        struct pool_region *region = *link;
        if (region == pool->region || region->users > 0) {
            link = &region->next;
            continue;
        }
        *link = region->next;
        region->next = unused;
        unused = region;
    }
    pthread_mutex_unlock(&pool->lock);
    for (struct pool_region *next; unused; unused = next) {
        next = unused->next;
        pool_region_close(unused);
    }
}

void pool_close_unused_regions(struct pool *pool)
{
    pthread_mutex_lock(&pool->memory_lock);
    close_unused_regions(pool);
    pthread_mutex_unlock(&pool->memory_lock);
}

static void pin_region(struct pool *pool, struct pool_region *region)
{
    if (pool->n_backends == 0)
        region_unpin(&region->host);
    else if (!pool_region_on_device(region))
        region_pin(&region->host, pool->backends[0].driver, pool->backends[0].backend);
}

// Call when another backend became the first one. Others may be filling the memory.
static void pin_regions(struct pool *pool)
{
    for (struct pool_region *region = pool->regions; region; region = region->next)
        pin_region(pool, region);
}

// Logs once: without a device this recurs with every new size, on a full one with every backend.
static void log_host_memory(struct pool *pool, int error)
{
    const char *why = error                  ? "the device gives no memory: "
                      : pool->n_backends > 1 ? "the frames are not all made on one GPU"
                                             : "the frames are not made on a GPU";
    if (!pool->logged)
        log_event(LOG_LEVEL_WARNING, "output=%s memory: cuda%s: its slots are on the host: %s%s",
                  pool->options.name, pool->options.kind == REGION_DEVICE_IPC ? "-ipc" : "", why,
                  error ? strerror(-error) : "");
    pool->logged = true;
}

static void log_unnamed_memory(const struct pool *pool, int error)
{
    if (error == -ESHUTDOWN)
        return; // the sink has released the name
    log_event(LOG_LEVEL_ERROR, "output=%s shared: its memory has no name in /dev/shm: %s",
              pool->options.name,
              error == -ENOMEM ? "there is no room for the slots" : strerror(-error));
}

static int open_at(const struct pool *pool, struct pool_region **ret, size_t size,
                   const struct pool_region_place *place)
{
    return pool_region_open(ret, place, pool->options.n, size, pool->options.header_bytes);
}

// Clients of the ring get frames even if the name is not available.
static int open_region(struct pool *pool, struct pool_region **ret, size_t size)
{
    const struct pool_backend *first = &pool->backends[0];
    const enum region_kind kind = pool->options.kind;
    const struct pool_region_place device = {kind, NULL, first->driver, first->backend};
    struct pool_region_place host = {.kind = kind == REGION_PRIVATE ? kind : REGION_SHARED,
                                     .object = pool->options.object};
    int rc = 0;
    if (pool->wants_device) {
        rc = open_at(pool, ret, size, &device);
        if (rc == 0)
            return 0;
    }
    if (region_is_on_device(kind))
        log_host_memory(pool, rc);
    rc = open_at(pool, ret, size, &host);
    if (rc < 0 && host.object) {
        log_unnamed_memory(pool, rc);
        host.object = NULL;
        rc = open_at(pool, ret, size, &host);
    }
    if (rc == 0)
        pin_region(pool, *ret);
    return rc;
}

bool pool_region_fits(const struct pool *pool, size_t size)
{
    const struct pool_region *region = pool->region;
    return region && region->stride >= size && pool_region_on_device(region) == pool->wants_device;
}

int pool_open_region(struct pool *pool, size_t size, int64_t *opening_ns)
{
    const int64_t begun_ns = monotonic_ns();
    struct pool_region *region = NULL;
    int rc = 0;
    pthread_mutex_unlock(&pool->lock);
    pthread_mutex_lock(&pool->memory_lock);
    pthread_mutex_lock(&pool->lock);
    const bool opens = !pool_region_fits(pool, size);
    if (opens)
        pool->region = NULL;
    pthread_mutex_unlock(&pool->lock);
    if (opens && begun_ns < pool->retry_ns) {
        rc = -ENOMEM;
    } else if (opens) {
        close_unused_regions(pool); // first: unused memory need not coexist with the new
        rc = open_region(pool, &region, size);
        pool->retry_ns = rc < 0 ? monotonic_ns() + RETRY_NS : 0;
    }
    pthread_mutex_lock(&pool->lock);
    if (region) {
        region->generation = ++pool->generation;
        region->next = pool->regions;
        pool->region = pool->regions = region;
        // A full device is not tried again until the pool's backends change.
        pool->wants_device = pool_region_on_device(region);
    }
    pthread_mutex_unlock(&pool->memory_lock);
    *opening_ns += monotonic_ns() - begun_ns;
    return rc < 0 ? -ENOMEM : 0;
}

void pool_renew_memory(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->region = NULL;
    pthread_mutex_unlock(&pool->lock);
}

static struct pool_backend *find_backend(struct pool *pool, const struct backend *backend)
{
    for (int i = 0; i < pool->n_backends; i++)
        if (pool->backends[i].backend == backend)
            return &pool->backends[i];
    return NULL;
}

// Call after the list of backends changed: results lie on the device only if all producers have it.
// memory_lock held.
static void update_device(struct pool *pool)
{
    pool->retry_ns = 0;
    pthread_mutex_lock(&pool->lock);
    pool->wants_device = region_is_on_device(pool->options.kind) && pool->n_backends == 1 &&
                         pool->backends[0].driver->export_open;
    pthread_mutex_unlock(&pool->lock);
}

void pool_add_backend(struct pool *pool, const struct backend_driver *driver,
                      struct backend *backend)
{
    pthread_mutex_lock(&pool->memory_lock);
    struct pool_backend *known = find_backend(pool, backend);
    if (known) {
        known->users++;
    } else if (pool->n_backends < POOL_BACKENDS_MAX) {
        pool->backends[pool->n_backends++] = (struct pool_backend){driver, backend, 1};
        update_device(pool);
        if (pool->n_backends == 1)
            pin_regions(pool);
    }
    pthread_mutex_unlock(&pool->memory_lock);
}

static bool is_on(const struct result *result, const struct backend *backend)
{
    return result->state != RESULT_FREE && result->memory == MEMORY_CUDA &&
           result->region->device.backend == backend;
}

// Waits while a consumer is being notified of a result, with the region's descriptor: for a moment.
static void end_results_on(struct pool *pool, const struct backend *backend)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->region && pool_region_on_device(pool->region))
        pool->region = NULL;
    for (int i = 0; i < pool->options.n; i++) {
        struct result *result = &pool->result[i];
        while (is_on(result, backend) && result->held > 0)
            pthread_cond_wait(&pool->room, &pool->lock);
        if (!is_on(result, backend))
            continue;
        result->loss = LOSS_BACKEND;
        pool_end_result(pool, result);
    }
    pool_publish_done(pool); // the results after them
    pthread_mutex_unlock(&pool->lock);
}

void pool_remove_backend(struct pool *pool, struct backend *backend)
{
    pthread_mutex_lock(&pool->memory_lock);
    struct pool_backend *known = find_backend(pool, backend);
    if (known && --known->users == 0) {
        end_results_on(pool, backend);
        const bool first = known == pool->backends;
        *known = pool->backends[--pool->n_backends];
        update_device(pool);
        close_unused_regions(pool); // including those on the device
        if (first)
            pin_regions(pool);
    }
    pthread_mutex_unlock(&pool->memory_lock);
}
