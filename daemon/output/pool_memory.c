#include "daemon/output/pool_impl.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/log.h"

void pool_collect(struct pool *pool)
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

static void pin(struct pool *pool, struct pool_region *region)
{
    if (pool->driver && !pool_region_on_device(region))
        region_pin(&region->host, pool->driver, pool->backend);
}

// Once: on the CPU it is so with every new size, on a full one with every join.
static void tell_of_host(struct pool *pool, int error)
{
    if (!pool->told)
        log_event(LOG_LEVEL_WARNING, "output=%s memory: cuda: its slots are on the host: %s%s",
                  pool->name,
                  error ? "the device gives no memory: " : "the frames are not made on a GPU",
                  error ? strerror(-error) : "");
    pool->told = true;
}

static int open_region(struct pool *pool, struct pool_region **ret, size_t size)
{
    enum region_kind host = pool->kind == REGION_PRIVATE ? REGION_PRIVATE : REGION_SHARED;
    int rc = 0;
    if (pool->wants_device) {
        rc = pool_region_open(ret, REGION_DEVICE, pool->n, size, pool->driver, pool->backend);
        if (rc == 0)
            return 0;
    }
    if (pool->kind == REGION_DEVICE)
        tell_of_host(pool, rc);
    pool->wants_device = false; // the device has no more; until the next pool_set_backend
    return pool_region_open(ret, host, pool->n, size, NULL, NULL);
}

static bool fits(const struct pool *pool, size_t size)
{
    return pool->region && pool->region->stride >= size &&
           pool_region_on_device(pool->region) == pool->wants_device;
}

int pool_provide(struct pool *pool, size_t size)
{
    struct pool_region *region;
    if (fits(pool, size))
        return 0;
    pool->region = NULL;
    pool_collect(pool); // first: where nothing is in use, there is no need for both at a time
    int rc = open_region(pool, &region, size);
    if (rc < 0)
        return -ENOMEM;
    region->generation = ++pool->generation;
    pin(pool, region);
    pthread_mutex_lock(&pool->lock);
    region->next = pool->regions;
    pool->regions = region;
    pthread_mutex_unlock(&pool->lock);
    pool->region = region;
    return 0;
}

// The list changes on this thread only, so that it can be walked without the lock.
void pool_set_backend(struct pool *pool, const struct backend_driver *driver,
                      struct backend *backend)
{
    pool->driver = driver;
    pool->backend = backend;
    pool->wants_device = pool->kind == REGION_DEVICE && driver->export_open;
    for (struct pool_region *region = pool->regions; region; region = region->next)
        pin(pool, region);
}

// Under lock.
static bool is_read(const struct pool *pool)
{
    for (int i = 0; i < pool->n; i++)
        if (pool->slot[i].state == SLOT_READY && pool->slot[i].memory == MEMORY_CUDA &&
            pool->slot[i].pins > 0)
            return true;
    return false;
}

// Slots on the device end now, whoever holds them. The loop is just sending one perhaps, with the
// region's descriptor: that takes no time.
static void take_back(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    while (is_read(pool))
        pthread_cond_wait(&pool->room, &pool->lock);
    for (int i = 0; i < pool->n; i++) {
        struct result *slot = &pool->slot[i];
        if (slot->memory != MEMORY_CUDA)
            continue;
        if (slot->state == SLOT_READY)
            pool_settle(pool, slot, LOSS_BACKEND);
        else if (slot->state == SLOT_DONE)
            slot->status = -EIO; // its turn to be published comes, and then it is settled
    }
    pthread_mutex_unlock(&pool->lock);
}

void pool_clear_backend(struct pool *pool)
{
    take_back(pool);
    for (struct pool_region *region = pool->regions; region; region = region->next) {
        if (region == pool->region && pool_region_on_device(region))
            pool->region = NULL;
        region_unpin(&region->host);
        region_close(&region->device);
    }
    pool->driver = NULL;
    pool->backend = NULL;
    pool->wants_device = false;
    pool_collect(pool);
}
