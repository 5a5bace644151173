#include "daemon/output/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"

enum { FREE_MIN = 2 }; // results that stalled consumers leave: one to fill while another is read

static uint64_t *lent_word(struct consumer *consumer, int number)
{
    return &consumer->lent[number / 64];
}

static uint64_t lent_bit(int number)
{
    return UINT64_C(1) << number % 64;
}

static struct result *older_result(struct result *a, struct result *b)
{
    return !a || b->ticket < a->ticket ? b : a;
}

// Under lock: the result in `state` that was claimed as `ticket`; NULL: there is none.
static struct result *find_ticket(struct pool *pool, enum result_state state, uint64_t ticket)
{
    for (int i = 0; i < pool->options.n; i++)
        if (pool->result[i].state == state && pool->result[i].ticket == ticket)
            return &pool->result[i];
    return NULL;
}

// --- the end of a result

// Under lock, for what nobody got: the one place that decides what a loss is counted as.
static enum loss loss_of(const struct pool *pool, enum result_fate fate)
{
    switch (fate) {
    case FATE_FAILED:
        return LOSS_BACKEND;
    case FATE_EVICTED:
        return LOSS_OVERFLOW;
    case FATE_LATE:
        return LOSS_LATE;
    case FATE_UNDELIVERED:
        return pool->options.undelivered;
    case FATE_NOT_REACHED:
        break;
    }
    return pool->sink == POOL_SINK_STOPPED ? LOSS_STOPPING : pool->options.undelivered;
}

// Under lock: whether the result's delivery is pending for some consumer; `emitted` is told to all
// of these.
static bool is_pending(struct pool *pool, uint64_t ticket, bool emitted)
{
    bool found = false;
    for (struct consumer *consumer = pool->consumers; consumer; consumer = consumer->next) {
        if (consumer->pending.ticket != ticket)
            continue;
        found = true;
        consumer->pending.emitted |= emitted;
    }
    return found;
}

static int count_good(const struct result *result)
{
    int good = 0;
    for (int i = 0; i < result->claimed; i++)
        good += result->item[i].status >= 0;
    return good;
}

// Under lock: counts items that are over for every consumer, or leaves that to the last consumer
// whose delivery of them is pending.
static void account_items(struct pool *pool, uint64_t ticket, int items, bool delivered,
                          enum result_fate fate)
{
    bool pending = is_pending(pool, ticket, delivered);
    for (int i = 0; i < items; i++) {
        if (delivered)
            ledger_emit(pool->options.ledger);
        else if (!pending)
            ledger_lose(pool->options.ledger, loss_of(pool, fate));
    }
}

// Under lock: the one end of every result. The slot's word falls before anything of the next result
// can be written there: that is how a late reader knows.
static void end_result(struct pool *pool, struct result *result)
{
    int good = count_good(result);
    for (int i = good; i < result->claimed; i++)
        ledger_lose(pool->options.ledger, loss_of(pool, FATE_FAILED));
    account_items(pool, result->ticket, good, result->delivered, result->fate);
    for (struct consumer *c = pool->consumers; c && result->lent > 0; c = c->next)
        *lent_word(c, result->number) &= ~lent_bit(result->number);
    atomic_store(pool_region_word(result->region, result->number), 0);
    result->region->users--;
    result->region = NULL;
    result->state = RESULT_FREE;
    pthread_cond_broadcast(&pool->room);
}

// Under lock, after each change of what needs a ready result. Under OVERFLOW_WAIT what is ready
// when there is no consumer stays for the next one.
static void end_unneeded(struct pool *pool, struct result *result)
{
    bool kept = pool->options.overflow == OVERFLOW_WAIT && pool->n_consumers == 0 &&
                pool->sink == POOL_SINK_OPEN;
    if (result->awaited == 0 && result->held == 0 && result->lent == 0 && !kept)
        end_result(pool, result);
}

// --- memory. Mapping and page-locking take their time, which nobody waits for under `lock`.

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

static void pin_region(struct pool *pool, struct pool_region *region)
{
    if (pool->driver && !pool_region_on_device(region))
        region_pin(&region->host, pool->driver, pool->backend);
}

// Once: without a device it is so with every new size, on a full one with every backend.
static void log_host_memory(struct pool *pool, int error)
{
    if (!pool->logged)
        log_event(LOG_LEVEL_WARNING, "output=%s memory: cuda: its slots are on the host: %s%s",
                  pool->options.name,
                  error ? "the device gives no memory: " : "the frames are not made on a GPU",
                  error ? strerror(-error) : "");
    pool->logged = true;
}

static int open_region(struct pool *pool, struct pool_region **ret, size_t size)
{
    const struct pool_options *options = &pool->options;
    enum region_kind host = options->kind == REGION_PRIVATE ? REGION_PRIVATE : REGION_SHARED;
    int rc = 0;
    if (pool->wants_device) {
        rc = pool_region_open(ret, REGION_DEVICE, options->n, size, pool->driver, pool->backend);
        if (rc == 0)
            return 0;
    }
    if (options->kind == REGION_DEVICE)
        log_host_memory(pool, rc);
    rc = pool_region_open(ret, host, options->n, size, NULL, NULL);
    if (rc == 0)
        pin_region(pool, *ret);
    return rc;
}

// Under lock.
static bool region_fits(const struct pool *pool, size_t size)
{
    const struct pool_region *region = pool->region;
    return region && region->stride >= size && pool_region_on_device(region) == pool->wants_device;
}

// Opens a region for results of `size` bytes, where no other producer has meanwhile.
static int open_larger_region(struct pool *pool, size_t size)
{
    struct pool_region *region = NULL;
    int rc = 0;
    pthread_mutex_lock(&pool->memory_lock);
    pthread_mutex_lock(&pool->lock);
    bool opens = !region_fits(pool, size);
    if (opens)
        pool->region = NULL;
    pthread_mutex_unlock(&pool->lock);
    if (opens) {
        close_unused_regions(pool); // first: where nothing is in use, no need for both at a time
        rc = open_region(pool, &region, size);
    }
    if (opens && rc == 0) {
        pthread_mutex_lock(&pool->lock);
        region->generation = ++pool->generation;
        region->next = pool->regions;
        pool->region = pool->regions = region;
        // A device that is full is not asked again until the next pool_set_backend.
        pool->wants_device = pool_region_on_device(region);
        pthread_mutex_unlock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->memory_lock);
    return rc < 0 ? -ENOMEM : 0;
}

// The list of regions changes under both locks, so that either is enough to walk it.
void pool_set_backend(struct pool *pool, const struct backend_driver *driver,
                      struct backend *backend)
{
    pthread_mutex_lock(&pool->memory_lock);
    pool->driver = driver;
    pool->backend = backend;
    pthread_mutex_lock(&pool->lock);
    pool->wants_device = pool->options.kind == REGION_DEVICE && driver->export_open;
    pthread_mutex_unlock(&pool->lock);
    for (struct pool_region *region = pool->regions; region; region = region->next)
        pin_region(pool, region);
    pthread_mutex_unlock(&pool->memory_lock);
}

// Under lock: a consumer is about to be told of a result on the device, with the region's
// descriptor.
static bool is_device_held(const struct pool *pool)
{
    for (int i = 0; i < pool->options.n; i++) {
        const struct result *result = &pool->result[i];
        if (result->state == RESULT_READY && result->memory == MEMORY_CUDA && result->held > 0)
            return true;
    }
    return false;
}

void pool_clear_backend(struct pool *pool)
{
    pthread_mutex_lock(&pool->memory_lock);
    pthread_mutex_lock(&pool->lock);
    while (is_device_held(pool)) // that takes no time
        pthread_cond_wait(&pool->room, &pool->lock);
    for (int i = 0; i < pool->options.n; i++) {
        struct result *result = &pool->result[i];
        if (result->state != RESULT_READY || result->memory != MEMORY_CUDA)
            continue;
        result->fate = FATE_FAILED;
        end_result(pool, result);
    }
    if (pool->region && pool_region_on_device(pool->region))
        pool->region = NULL;
    pool->wants_device = false;
    pthread_mutex_unlock(&pool->lock);
    close_unused_regions(pool); // those on the device among them
    for (struct pool_region *region = pool->regions; region; region = region->next)
        region_unpin(&region->host);
    pool->driver = NULL;
    pool->backend = NULL;
    pthread_mutex_unlock(&pool->memory_lock);
}

// --- producers

// Under lock: the result that was not used for longest of those that are free.
static struct result *find_free(struct pool *pool)
{
    struct result *found = NULL;
    for (int i = 0; i < pool->options.n; i++)
        if (pool->result[i].state == RESULT_FREE)
            found = older_result(found, &pool->result[i]);
    return found;
}

// Under lock: the result that is to make room for a newer one by the policy; NULL: none.
static struct result *find_evictable(struct pool *pool)
{
    bool is_oldest_lent[POOL_RESULTS_MAX] = {false};
    struct result *passed = NULL, *spare = NULL;
    for (struct consumer *consumer = pool->consumers; consumer; consumer = consumer->next) {
        struct result *oldest = NULL;
        for (int i = 0; i < pool->options.n; i++)
            if (*lent_word(consumer, i) & lent_bit(i))
                oldest = older_result(oldest, &pool->result[i]);
        if (oldest)
            is_oldest_lent[oldest->number] = true;
    }
    bool newest = pool->options.overflow == OVERFLOW_DROP_NEWEST;
    for (int i = 0; i < pool->options.n; i++) {
        struct result *result = &pool->result[i];
        if (result->state != RESULT_READY || result->held > 0)
            continue;
        if (result->lent == 0 && result->awaited < pool->n_consumers)
            passed = older_result(passed, result); // it waits for slower consumers only
        if (!is_oldest_lent[i] && (result->delivered || !newest))
            spare = older_result(spare, result);
    }
    return newest && passed ? passed : spare;
}

// Under lock.
static bool is_worth_waiting(struct pool *pool)
{
    if (pool->sink != POOL_SINK_OPEN || pool->open)
        return false;
    if (pool->n_consumers == 0)
        return pool->options.overflow == OVERFLOW_WAIT;
    return !find_free(pool);
}

// Under lock: the result to claim an item of, by the policy, or why there is none.
static int find_room(struct pool *pool, const struct pool_request *request, struct result **ret)
{
    bool waits = pool->options.overflow == OVERFLOW_WAIT;
    int64_t until_ns = waits ? INT64_MAX : request->wait_until_ns;
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    while (!atomic_load(request->stop) && is_worth_waiting(pool) && monotonic_ns() < until_ns)
        pthread_cond_timedwait(&pool->room, &pool->lock, &until);
    if (atomic_load(request->stop))
        return -ECANCELED;
    if (pool->sink == POOL_SINK_REFUSED)
        return -EPIPE;
    if (pool->sink != POOL_SINK_OPEN)
        return -ESHUTDOWN;
    if (pool->n_consumers == 0)
        return -ENOTCONN;
    struct result *found = pool->open ? pool->open : find_free(pool);
    if (!found && !waits && (found = find_evictable(pool))) {
        found->fate = FATE_EVICTED;
        end_result(pool, found);
    }
    if (!found)
        return -EAGAIN;
    *ret = found;
    return 0;
}

// Under lock: a free result's use begins.
static void begin_result(struct pool *pool, struct result *result, size_t item_size)
{
    struct pool_region *region = pool->region;
    region->users++;
    result->region = region;
    result->data = pool_region_data(region, result->number);
    result->size = item_size * (size_t)pool->options.items;
    result->memory = pool_region_on_device(region) ? MEMORY_CUDA : region->host.memory;
    result->ticket = pool->next_ticket++;
    result->state = RESULT_FILLING;
    result->claimed = result->complete = 0;
    result->awaited = result->held = result->lent = 0;
    result->delivered = false;
    result->fate = FATE_NOT_REACHED;
    for (int i = 0; i < pool->options.items; i++) {
        result->item[i].status = 0;
        if (result->generation != region->generation)
            result->item[i].valid_op = 0;
    }
    result->generation = region->generation;
}

int pool_claim(struct pool *pool, struct pool_request *request, struct result **ret)
{
    const size_t size = request->size * (size_t)pool->options.items;
    struct result *result = NULL;
    int rc;
    pthread_mutex_lock(&pool->lock);
    while ((rc = find_room(pool, request, &result)) == 0 && !region_fits(pool, size)) {
        pthread_mutex_unlock(&pool->lock);
        const int64_t begun_ns = monotonic_ns();
        rc = open_larger_region(pool, size);
        request->opening_ns += monotonic_ns() - begun_ns;
        if (rc < 0)
            return rc;
        pthread_mutex_lock(&pool->lock);
    }
    if (rc == 0) {
        if (result != pool->open)
            begin_result(pool, result, request->size);
        rc = result->claimed++;
        pool->open = result->claimed < pool->options.items ? result : NULL;
        *ret = result;
    }
    bool moved = pool->regions && pool->regions->next;
    pthread_mutex_unlock(&pool->lock);
    if (moved) {
        pthread_mutex_lock(&pool->memory_lock);
        close_unused_regions(pool);
        pthread_mutex_unlock(&pool->memory_lock);
    }
    return rc;
}

// Under lock: makes ready what is done, in the order of claims: a backend may finish a younger
// result first.
static void publish_done(struct pool *pool)
{
    struct result *result;
    while ((result = find_ticket(pool, RESULT_DONE, pool->head))) {
        pool->head++;
        if (count_good(result) == 0) {
            end_result(pool, result);
            continue;
        }
        result->state = RESULT_READY;
        atomic_store(pool_region_word(result->region, result->number), result->ticket);
        for (const struct consumer *c = pool->consumers; c; c = c->next)
            result->awaited += c->cursor <= result->ticket;
        end_unneeded(pool, result);
    }
}

void pool_complete(struct pool *pool, struct result *result, int index, int status)
{
    struct item *item = &result->item[index];
    pthread_mutex_lock(&pool->lock);
    item->finished_ns = monotonic_ns();
    item->status = status;
    if (status < 0)
        item->valid_op = 0;
    if (++result->complete == pool->options.items)
        result->state = RESULT_DONE;
    publish_done(pool);
    pthread_mutex_unlock(&pool->lock);
}

void pool_wake(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->room);
    pthread_mutex_unlock(&pool->lock);
}

// --- consumers

void pool_set_sink(struct pool *pool, enum pool_sink sink)
{
    pthread_mutex_lock(&pool->lock);
    pool->sink = sink;
    for (struct consumer *c = pool->consumers; c && sink == POOL_SINK_STOPPED; c = c->next)
        c->cursor = UINT64_MAX;
    for (int i = 0; i < pool->options.n; i++) {
        struct result *result = &pool->result[i];
        if (result->state != RESULT_READY)
            continue;
        if (result->awaited > 0 && sink == POOL_SINK_STOPPED) {
            result->awaited = 0;
            result->fate = FATE_NOT_REACHED;
        }
        end_unneeded(pool, result);
    }
    pthread_cond_broadcast(&pool->room);
    pthread_mutex_unlock(&pool->lock);
}

void pool_attach(struct pool *pool, struct consumer *consumer)
{
    pthread_mutex_lock(&pool->lock);
    bool takes_all = pool->options.overflow == OVERFLOW_WAIT && pool->n_consumers == 0;
    *consumer = (struct consumer){.next = pool->consumers, .cursor = takes_all ? 0 : pool->head};
    pool->consumers = consumer;
    pool->n_consumers++;
    for (int i = 0; i < pool->options.n; i++)
        if (pool->result[i].state == RESULT_READY)
            pool->result[i].awaited += consumer->cursor <= pool->result[i].ticket;
    pthread_cond_broadcast(&pool->room);
    pthread_mutex_unlock(&pool->lock);
}

// Under lock: the delivery that was pending is over.
static void end_delivery(struct pool *pool, struct consumer *consumer, bool delivered)
{
    const uint64_t ticket = consumer->pending.ticket;
    struct result *result = find_ticket(pool, RESULT_READY, ticket);
    consumer->pending.ticket = 0;
    if (result)
        result->delivered |= delivered;
    else if (!consumer->pending.emitted)
        account_items(pool, ticket, consumer->pending.items, delivered, FATE_UNDELIVERED);
}

void pool_detach(struct pool *pool, struct consumer *consumer)
{
    pthread_mutex_lock(&pool->lock);
    struct consumer **link = &pool->consumers;
    while (*link != consumer)
        link = &(*link)->next;
    *link = consumer->next;
    pool->n_consumers--;
    for (int i = 0; i < pool->options.n; i++) {
        struct result *result = &pool->result[i];
        bool awaits = consumer->cursor <= result->ticket, holds = consumer->held == result;
        bool reads = *lent_word(consumer, i) & lent_bit(i);
        if (result->state != RESULT_READY || !(awaits || holds || reads))
            continue;
        result->awaited -= awaits;
        result->held -= holds;
        result->lent -= reads;
        result->fate = FATE_NOT_REACHED;
        end_unneeded(pool, result);
    }
    if (consumer->pending.ticket)
        end_delivery(pool, consumer, false);
    pthread_cond_broadcast(&pool->room);
    pthread_mutex_unlock(&pool->lock);
}

bool pool_has_next(struct pool *pool, const struct consumer *consumer)
{
    return consumer->cursor < atomic_load(&pool->head);
}

struct result *pool_acquire(struct pool *pool, struct consumer *consumer)
{
    struct result *found;
    if (!pool_has_next(pool, consumer))
        return NULL;
    pthread_mutex_lock(&pool->lock);
    do {
        found = NULL;
        for (int i = 0; i < pool->options.n; i++) {
            struct result *result = &pool->result[i];
            if (result->state == RESULT_READY && result->ticket >= consumer->cursor)
                found = older_result(found, result);
        }
        consumer->cursor = found ? found->ticket + 1 : pool->head;
        if (!found)
            break;
        found->awaited--;
        if (!frame_is_late(&found->item[0].frame, pool->options.max_age_ns)) {
            found->held++;
            break;
        }
        found->fate = FATE_LATE;
        end_unneeded(pool, found);
    } while (true);
    consumer->held = found;
    pthread_mutex_unlock(&pool->lock);
    return found;
}

// Under lock.
static struct result *end_hold(struct pool *pool, struct consumer *consumer)
{
    struct result *result = consumer->held;
    consumer->held = NULL;
    result->held--;
    pthread_cond_broadcast(&pool->room); // pool_clear_backend may wait for it
    return result;
}

void pool_release(struct pool *pool, struct consumer *consumer, bool delivered)
{
    pthread_mutex_lock(&pool->lock);
    if (consumer->held) {
        struct result *result = end_hold(pool, consumer);
        result->delivered |= delivered;
        if (!delivered)
            result->fate = FATE_UNDELIVERED;
        end_unneeded(pool, result);
    } else if (consumer->pending.ticket) {
        end_delivery(pool, consumer, delivered);
    }
    pthread_mutex_unlock(&pool->lock);
}

bool pool_is_short(struct pool *pool)
{
    int held = 0;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->options.n; i++)
        held += pool->result[i].state == RESULT_READY && pool->result[i].held > 0;
    pthread_mutex_unlock(&pool->lock);
    return held > pool->options.n - FREE_MIN;
}

void pool_detach_payload(struct pool *pool, struct consumer *consumer)
{
    pthread_mutex_lock(&pool->lock);
    struct result *result = end_hold(pool, consumer);
    consumer->pending.ticket = result->ticket;
    consumer->pending.items = count_good(result);
    consumer->pending.emitted = false;
    end_unneeded(pool, result);
    pthread_mutex_unlock(&pool->lock);
}

void pool_lend(struct pool *pool, struct consumer *consumer, bool told)
{
    pthread_mutex_lock(&pool->lock);
    struct result *result = end_hold(pool, consumer);
    if (told) {
        *lent_word(consumer, result->number) |= lent_bit(result->number);
        result->lent++;
        result->lent_ns = monotonic_ns();
    } else {
        consumer->cursor = result->ticket;
        result->awaited++;
    }
    pthread_mutex_unlock(&pool->lock);
}

bool pool_return(struct pool *pool, struct consumer *consumer, uint32_t number, uint64_t ticket)
{
    if (number >= (uint32_t)pool->options.n)
        return false;
    pthread_mutex_lock(&pool->lock);
    struct result *result = &pool->result[number];
    uint64_t *lent = lent_word(consumer, (int)number), bit = lent_bit((int)number);
    if (result->ticket == ticket && (*lent & bit)) {
        *lent &= ~bit;
        result->lent--;
        result->delivered = true;
        end_unneeded(pool, result);
    }
    pthread_mutex_unlock(&pool->lock);
    return true;
}

int64_t pool_revoke(struct pool *pool, int64_t lent_ns)
{
    int64_t first = 0;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->options.n; i++) {
        struct result *result = &pool->result[i];
        if (result->state != RESULT_READY || result->lent == 0)
            continue;
        if (result->lent_ns >= lent_ns) {
            first = first == 0 || result->lent_ns < first ? result->lent_ns : first;
            continue;
        }
        for (struct consumer *c = pool->consumers; c; c = c->next)
            *lent_word(c, i) &= ~lent_bit(i);
        result->lent = 0;
        result->fate = FATE_LATE;
        end_unneeded(pool, result);
    }
    pthread_mutex_unlock(&pool->lock);
    return first;
}

bool pool_is_busy(struct pool *pool, const struct consumer *consumer)
{
    pthread_mutex_lock(&pool->lock);
    bool busy = consumer->held || consumer->pending.ticket;
    for (size_t i = 0; i < sizeof consumer->lent / sizeof consumer->lent[0]; i++)
        busy |= consumer->lent[i] != 0;
    pthread_mutex_unlock(&pool->lock);
    return busy;
}

// --- life

int pool_open(struct pool **ret, const struct pool_options *options)
{
    pthread_condattr_t attributes;
    const size_t n = (size_t)options->n, items = (size_t)options->items;
    if (options->n > POOL_RESULTS_MAX)
        return -EINVAL;
    struct pool *pool = calloc(1, sizeof *pool + n * sizeof pool->result[0]);
    struct item *item = calloc(n * items, sizeof *item);
    if (!pool || !item) {
        free(pool);
        free(item);
        return -ENOMEM;
    }
    pool->options = *options;
    for (int i = 0; i < options->n; i++) {
        pool->result[i].number = i;
        pool->result[i].item = item + (size_t)i * items;
    }
    pool->next_ticket = 1;
    pool->head = 1;
    pthread_mutex_init(&pool->memory_lock, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->room, &attributes);
    pthread_condattr_destroy(&attributes);
    *ret = pool;
    return 0;
}

void pool_close(struct pool *pool)
{
    if (!pool)
        return;
    pool->sink = POOL_SINK_STOPPED;
    for (int i = 0; i < pool->options.n; i++)
        if (pool->result[i].state != RESULT_FREE)
            end_result(pool, &pool->result[i]);
    pool->region = NULL;
    close_unused_regions(pool);
    pthread_cond_destroy(&pool->room);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->memory_lock);
    free(pool->result[0].item);
    free(pool);
}
