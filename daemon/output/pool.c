#include "daemon/base/clock.h"
#include "daemon/output/pool_impl.h"

#include <errno.h>
#include <stdlib.h>

int pool_open(struct pool **ret, const struct pool_options *options)
{
    pthread_condattr_t attributes;
    struct pool *pool = calloc(1, sizeof *pool + (size_t)options->n * sizeof pool->slot[0]);
    if (!pool)
        return -ENOMEM;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->room, &attributes);
    pthread_condattr_destroy(&attributes);
    pool->name = options->name;
    pool->kind = options->kind;
    pool->ledger = options->ledger;
    pool->next_ticket = pool->next_publication = 1;
    pool->n = options->n;
    for (int i = 0; i < pool->n; i++)
        pool->slot[i].number = i;
    *ret = pool;
    return 0;
}

// Under lock: whether some client carries the frame; `emitted` tells all that do.
static bool is_carried(struct pool *pool, uint64_t ticket, bool emitted)
{
    bool found = false;
    for (struct slot_receipt *receipt = pool->receipts; receipt; receipt = receipt->next) {
        if (receipt->ticket != ticket)
            continue;
        found = true;
        receipt->emitted |= emitted;
    }
    return found;
}

// The ledger is settled here, or by the last client that carries the frame. The slot's word falls
// before anything of the next frame can be written: that is how a late reader knows.
void pool_settle(struct pool *pool, struct result *slot, enum loss reason)
{
    bool carried = is_carried(pool, slot->ticket, slot->delivered);
    if (slot->delivered)
        ledger_emit(pool->ledger);
    else if (!carried)
        ledger_lose(pool->ledger, reason);
    atomic_store(pool_region_word(slot->region, slot->number), 0);
    slot->region->users--;
    slot->region = NULL;
    slot->holders = 0;
    slot->state = SLOT_FREE;
    pthread_cond_signal(&pool->room);
}

void pool_close(struct pool *pool)
{
    if (!pool)
        return;
    for (int i = 0; i < pool->n; i++)
        if (pool->slot[i].state != SLOT_FREE)
            pool_settle(pool, &pool->slot[i], LOSS_STOPPING);
    pool->region = NULL;
    pool_collect(pool);
    pthread_cond_destroy(&pool->room);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

// Under lock: the slot in `state` with the lowest ticket that nobody has; NULL where there is none.
static struct result *oldest(struct pool *pool, enum slot_state state)
{
    struct result *found = NULL;
    for (int i = 0; i < pool->n; i++) {
        struct result *slot = &pool->slot[i];
        if (slot->state == (int)state && slot->pins == 0 && slot->holders == 0 &&
            (!found || slot->ticket < found->ticket))
            found = slot;
    }
    return found;
}

// Under lock: the slot that makes room for a newer frame by the policy.
static struct result *oldest_to_drop(struct pool *pool, enum overflow overflow)
{
    if (overflow == OVERFLOW_WAIT)
        return NULL;
    if (overflow == OVERFLOW_DROP_OLDEST)
        return pool_spare(pool, false);
    struct result *slot = oldest(pool, SLOT_READY);
    return slot && slot->info.ordinal < pool->passed ? slot : pool_spare(pool, true);
}

// Under lock: whether OVERFLOW_WAIT waits for a client, or for one to be through with a slot. Where
// the sink cannot be opened there is nobody to wait for.
static bool is_to_wait(struct pool *pool, struct result **ret)
{
    if (pool->ended || pool->listeners == POOL_NO_SINK)
        return false;
    return pool->listeners == 0 || !(*ret = oldest(pool, SLOT_FREE));
}

// Under lock: finds a slot to fill by the policy, or says why there is none.
static int find_room(struct pool *pool, enum overflow overflow, const _Atomic bool *stop,
                     struct result **ret)
{
    struct result *slot = NULL;
    while (overflow == OVERFLOW_WAIT && !atomic_load(stop) && is_to_wait(pool, &slot))
        pthread_cond_wait(&pool->room, &pool->lock);
    if (atomic_load(stop))
        return -ECANCELED;
    if (pool->ended)
        return -ESHUTDOWN;
    if (pool->listeners <= 0)
        return pool->listeners == 0 ? -ENOTCONN : -EPIPE;
    if (!slot)
        slot = oldest(pool, SLOT_FREE);
    if (!slot && (slot = oldest_to_drop(pool, overflow)))
        pool_settle(pool, slot, LOSS_OVERFLOW);
    if (!slot)
        return -EAGAIN;
    *ret = slot;
    return 0;
}

// Under lock: the slot's use begins.
static void begin(struct pool *pool, struct result *slot, size_t size)
{
    struct pool_region *region = pool->region;
    region->users++;
    slot->region = region;
    slot->data = pool_region_data(region, slot->number);
    slot->size = size;
    if (slot->generation != region->generation)
        slot->holds = 0;
    slot->generation = region->generation;
    slot->memory = pool_region_on_device(region) ? MEMORY_CUDA : region->host.memory;
    slot->status = 0;
    slot->delivered = false;
    slot->ticket = pool->next_ticket++;
}

int pool_claim(struct pool *pool, size_t size, enum overflow overflow, const _Atomic bool *stop,
               struct result **ret)
{
    struct result *slot = NULL;
    pthread_mutex_lock(&pool->lock);
    int rc = find_room(pool, overflow, stop, &slot);
    bool moved = pool->regions && pool->regions->next;
    if (rc == 0)
        slot->state = SLOT_FILLING;
    pthread_mutex_unlock(&pool->lock);
    if (moved)
        pool_collect(pool);
    if (rc < 0)
        return rc;
    rc = pool_provide(pool, size);
    pthread_mutex_lock(&pool->lock);
    if (rc == 0)
        begin(pool, slot, size);
    else
        slot->state = SLOT_FREE;
    pthread_mutex_unlock(&pool->lock);
    if (rc == 0)
        *ret = slot;
    return rc;
}

void pool_wait(struct pool *pool, int64_t until_ns, const _Atomic bool *stop)
{
    const struct timespec until = {.tv_sec = until_ns / 1000000000,
                                   .tv_nsec = until_ns % 1000000000};
    if (monotonic_ns() >= until_ns)
        return;
    pthread_mutex_lock(&pool->lock);
    while (!atomic_load(stop) && !pool->ended && pool->listeners > 0 && !oldest(pool, SLOT_FREE))
        if (pthread_cond_timedwait(&pool->room, &pool->lock, &until) != 0)
            break;
    pthread_mutex_unlock(&pool->lock);
}

void pool_wake(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->room);
    pthread_mutex_unlock(&pool->lock);
}

void pool_end(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->ended = true;
    pthread_cond_broadcast(&pool->room);
    pthread_mutex_unlock(&pool->lock);
}

void pool_complete(struct pool *pool, struct result *slot, int status)
{
    pthread_mutex_lock(&pool->lock);
    slot->finished_ns = monotonic_ns();
    slot->status = status;
    if (status < 0)
        slot->holds = 0;
    slot->state = SLOT_DONE;
    pthread_mutex_unlock(&pool->lock);
}

// Under lock: the slot in `state` that was given out as `ticket`; NULL: it is in another state.
static struct result *with_ticket(struct pool *pool, enum slot_state state, uint64_t ticket)
{
    for (int i = 0; i < pool->n; i++)
        if (pool->slot[i].state == (int)state && pool->slot[i].ticket == ticket)
            return &pool->slot[i];
    return NULL;
}

int pool_publish(struct pool *pool)
{
    int published = 0;
    struct result *slot;
    pthread_mutex_lock(&pool->lock);
    // In the order taken: a backend may finish a younger frame first.
    while ((slot = with_ticket(pool, SLOT_DONE, pool->next_publication))) {
        pool->next_publication++;
        if (slot->status < 0) {
            pool_settle(pool, slot, LOSS_BACKEND);
            continue;
        }
        slot->state = SLOT_READY;
        atomic_store(pool_region_word(slot->region, slot->number), slot->ticket);
        pool->head = slot->info.ordinal + 1;
        published++;
    }
    pthread_mutex_unlock(&pool->lock);
    return published;
}

void pool_listeners(struct pool *pool, int n)
{
    pthread_mutex_lock(&pool->lock);
    pool->listeners = n;
    pthread_cond_broadcast(&pool->room);
    pthread_mutex_unlock(&pool->lock);
}

struct result *pool_next(struct pool *pool, uint64_t from)
{
    struct result *found = NULL;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->n; i++) {
        struct result *slot = &pool->slot[i];
        if (slot->state == SLOT_READY && slot->info.ordinal >= from &&
            (!found || slot->ticket < found->ticket))
            found = slot;
    }
    if (found)
        found->pins++;
    pthread_mutex_unlock(&pool->lock);
    return found;
}

void pool_unpin(struct pool *pool, struct result *slot, bool delivered)
{
    pthread_mutex_lock(&pool->lock);
    slot->pins--;
    slot->delivered |= delivered;
    pthread_cond_signal(&pool->room);
    pthread_mutex_unlock(&pool->lock);
}

void pool_carry(struct pool *pool, struct result *slot, struct slot_receipt *receipt)
{
    pthread_mutex_lock(&pool->lock);
    slot->pins--;
    *receipt = (struct slot_receipt){.ticket = slot->ticket, .next = pool->receipts};
    pool->receipts = receipt;
    pthread_mutex_unlock(&pool->lock);
}

void pool_redeem(struct pool *pool, struct slot_receipt *receipt, bool delivered)
{
    pthread_mutex_lock(&pool->lock);
    struct slot_receipt **link = &pool->receipts;
    while (*link != receipt)
        link = &(*link)->next;
    *link = receipt->next;
    struct result *slot = with_ticket(pool, SLOT_READY, receipt->ticket);
    if (slot) {
        slot->delivered |= delivered;
    } else if (!receipt->emitted) {
        bool carried = is_carried(pool, receipt->ticket, delivered);
        if (delivered)
            ledger_emit(pool->ledger);
        else if (!carried)
            ledger_lose(pool->ledger, LOSS_CLIENT);
    }
    pthread_mutex_unlock(&pool->lock);
}

void pool_retire(struct pool *pool, uint64_t below, enum loss reason)
{
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->n; i++) {
        struct result *slot = &pool->slot[i];
        if (slot->state == SLOT_READY && slot->pins == 0 && slot->holders == 0 &&
            slot->info.ordinal < below)
            pool_settle(pool, slot, reason);
    }
    pthread_mutex_unlock(&pool->lock);
}

void pool_passed(struct pool *pool, uint64_t ordinal)
{
    pthread_mutex_lock(&pool->lock);
    pool->passed = ordinal;
    pthread_mutex_unlock(&pool->lock);
}

uint64_t pool_head(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t head = pool->head;
    pthread_mutex_unlock(&pool->lock);
    return head;
}

int pool_pinned(struct pool *pool)
{
    int pinned = 0;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->n; i++)
        pinned += pool->slot[i].pins > 0;
    pthread_mutex_unlock(&pool->lock);
    return pinned;
}

int pool_count(const struct pool *pool)
{
    return pool->n;
}

bool pool_idle(struct pool *pool)
{
    bool idle = true;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->n; i++)
        idle &= pool->slot[i].state == SLOT_FREE;
    pthread_mutex_unlock(&pool->lock);
    return idle;
}
