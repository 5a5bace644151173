#include "daemon/sink/slots.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum state { FREE, FILLING, DONE, READY };

struct slots {
    pthread_mutex_t lock; // guards all below
    pthread_cond_t room;  // a slot became free, a client came, or slots_wake
    const struct backend_driver *driver;
    struct backend *backend;
    struct ledger *ledger;
    uint64_t next_ticket;      // of the next slot to be taken
    uint64_t next_publication; // ticket of the next slot to become ready
    uint64_t head;
    uint64_t passed; // ordinal that the fastest client is at
    int listeners;
    struct slot_receipt *receipts; // of clients that write on without a slot
    int n;
    struct slot slot[];
};

int slots_open(struct slots **ret, int n, const struct backend_driver *driver,
               struct backend *backend, struct ledger *ledger)
{
    struct slots *pool = calloc(1, sizeof *pool + (size_t)n * sizeof pool->slot[0]);
    if (!pool)
        return -ENOMEM;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->room, NULL);
    pool->driver = driver;
    pool->backend = backend;
    pool->ledger = ledger;
    pool->n = n;
    *ret = pool;
    return 0;
}

// Under lock: whether some client carries the frame; `emitted` tells all that do.
static bool is_carried(struct slots *pool, uint64_t ticket, bool emitted)
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

// Under lock. The one exit of every slot that was taken: the ledger is settled here, or by the last
// client that carries the frame.
static void settle(struct slots *pool, struct slot *slot, enum loss reason)
{
    bool carried = is_carried(pool, slot->ticket, slot->delivered);
    if (slot->delivered)
        ledger_emit(pool->ledger);
    else if (!carried)
        ledger_lose(pool->ledger, reason);
    slot->state = FREE;
    pthread_cond_signal(&pool->room);
}

static void memory_close(struct slots *pool, struct slot *slot)
{
    pool->driver->unpin(pool->backend, slot->data);
    free(slot->data);
    slot->data = NULL;
    slot->capacity = 0;
}

// Memory that cannot be pinned is only slower to download into.
static void memory_open(struct slots *pool, struct slot *slot, size_t size)
{
    const size_t pages = (size + 4095) & ~(size_t)4095;
    slot->data = aligned_alloc(4096, pages);
    if (!slot->data)
        return;
    slot->capacity = size;
    pool->driver->pin(pool->backend, slot->data, pages);
}

void slots_close(struct slots *pool)
{
    if (!pool)
        return;
    for (int i = 0; i < pool->n; i++) {
        if (pool->slot[i].state != FREE)
            settle(pool, &pool->slot[i], LOSS_STOPPING);
        memory_close(pool, &pool->slot[i]);
    }
    pthread_cond_destroy(&pool->room);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

// Under lock: the slot in `state` with the lowest ticket, not pinned; NULL where there is none.
static struct slot *oldest(struct slots *pool, enum state state)
{
    struct slot *found = NULL;
    for (int i = 0; i < pool->n; i++) {
        struct slot *slot = &pool->slot[i];
        if (slot->state == (int)state && slot->pins == 0 &&
            (!found || slot->ticket < found->ticket))
            found = slot;
    }
    return found;
}

// Under lock: the slot that makes room for a newer frame by the policy.
static struct slot *oldest_to_drop(struct slots *pool, enum overflow overflow)
{
    struct slot *slot = overflow == OVERFLOW_WAIT ? NULL : oldest(pool, READY);
    if (slot && overflow == OVERFLOW_DROP_NEWEST && slot->info.ordinal >= pool->passed)
        slot = NULL;
    return slot;
}

// Under lock: finds a slot to fill by the policy, or says why there is none.
static int find_room(struct slots *pool, enum overflow overflow, const _Atomic bool *stop,
                     struct slot **ret)
{
    struct slot *slot = NULL;
    while (overflow == OVERFLOW_WAIT && !atomic_load(stop) &&
           (pool->listeners <= 0 || !(slot = oldest(pool, FREE))))
        pthread_cond_wait(&pool->room, &pool->lock);
    if (atomic_load(stop))
        return -ECANCELED;
    if (pool->listeners <= 0)
        return pool->listeners == 0 ? -ENOTCONN : -EPIPE;
    if (!slot)
        slot = oldest(pool, FREE);
    if (!slot && (slot = oldest_to_drop(pool, overflow)))
        settle(pool, slot, LOSS_OVERFLOW);
    if (!slot)
        return -EAGAIN;
    *ret = slot;
    return 0;
}

// A slot grows where the camera's geometry did; never for a frame like the one before.
static int fit(struct slots *pool, struct slot *slot, size_t size)
{
    if (slot->capacity < size) {
        memory_close(pool, slot);
        memory_open(pool, slot, size);
    }
    slot->size = size;
    return slot->data ? 0 : -ENOMEM;
}

int slots_take(struct slots *pool, size_t size, enum overflow overflow, const _Atomic bool *stop,
               struct slot **ret)
{
    struct slot *slot = NULL;
    pthread_mutex_lock(&pool->lock);
    int rc = find_room(pool, overflow, stop, &slot);
    if (rc == 0)
        rc = fit(pool, slot, size);
    if (rc == 0) {
        slot->state = FILLING;
        slot->status = 0;
        slot->delivered = false;
        slot->ticket = pool->next_ticket++;
        *ret = slot;
    }
    pthread_mutex_unlock(&pool->lock);
    return rc;
}

void slots_wake(struct slots *pool)
{
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->room);
    pthread_mutex_unlock(&pool->lock);
}

void slots_done(struct slots *pool, struct slot *slot, int status)
{
    pthread_mutex_lock(&pool->lock);
    slot->finished_ns = monotonic_ns();
    slot->status = status;
    slot->state = DONE;
    pthread_mutex_unlock(&pool->lock);
}

// Under lock: the slot in `state` that was given out as `ticket`; NULL: it is in another state.
static struct slot *with_ticket(struct slots *pool, enum state state, uint64_t ticket)
{
    for (int i = 0; i < pool->n; i++)
        if (pool->slot[i].state == (int)state && pool->slot[i].ticket == ticket)
            return &pool->slot[i];
    return NULL;
}

int slots_publish(struct slots *pool)
{
    int published = 0;
    struct slot *slot;
    pthread_mutex_lock(&pool->lock);
    // In the order taken: a backend may finish a younger frame first.
    while ((slot = with_ticket(pool, DONE, pool->next_publication))) {
        pool->next_publication++;
        if (slot->status < 0) {
            settle(pool, slot, LOSS_BACKEND);
            continue;
        }
        slot->state = READY;
        pool->head = slot->info.ordinal + 1;
        published++;
    }
    pthread_mutex_unlock(&pool->lock);
    return published;
}

void slots_listeners(struct slots *pool, int n)
{
    pthread_mutex_lock(&pool->lock);
    pool->listeners = n;
    pthread_cond_broadcast(&pool->room);
    pthread_mutex_unlock(&pool->lock);
}

struct slot *slots_next(struct slots *pool, uint64_t from)
{
    struct slot *found = NULL;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->n; i++) {
        struct slot *slot = &pool->slot[i];
        if (slot->state == READY && slot->info.ordinal >= from &&
            (!found || slot->ticket < found->ticket))
            found = slot;
    }
    if (found)
        found->pins++;
    pthread_mutex_unlock(&pool->lock);
    return found;
}

void slots_unpin(struct slots *pool, struct slot *slot, bool delivered)
{
    pthread_mutex_lock(&pool->lock);
    slot->pins--;
    slot->delivered |= delivered;
    pthread_mutex_unlock(&pool->lock);
}

void slots_carry(struct slots *pool, struct slot *slot, struct slot_receipt *receipt)
{
    pthread_mutex_lock(&pool->lock);
    slot->pins--;
    *receipt = (struct slot_receipt){.ticket = slot->ticket, .next = pool->receipts};
    pool->receipts = receipt;
    pthread_mutex_unlock(&pool->lock);
}

void slots_redeem(struct slots *pool, struct slot_receipt *receipt, bool delivered)
{
    pthread_mutex_lock(&pool->lock);
    struct slot_receipt **link = &pool->receipts;
    while (*link != receipt)
        link = &(*link)->next;
    *link = receipt->next;
    struct slot *slot = with_ticket(pool, READY, receipt->ticket);
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

void slots_retire(struct slots *pool, uint64_t below, enum loss reason)
{
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->n; i++) {
        struct slot *slot = &pool->slot[i];
        if (slot->state == READY && slot->pins == 0 && slot->info.ordinal < below)
            settle(pool, slot, reason);
    }
    pthread_mutex_unlock(&pool->lock);
}

void slots_passed(struct slots *pool, uint64_t ordinal)
{
    pthread_mutex_lock(&pool->lock);
    pool->passed = ordinal;
    pthread_mutex_unlock(&pool->lock);
}

uint64_t slots_head(struct slots *pool)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t head = pool->head;
    pthread_mutex_unlock(&pool->lock);
    return head;
}

int slots_pinned(struct slots *pool)
{
    int pinned = 0;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->n; i++)
        pinned += pool->slot[i].pins > 0;
    pthread_mutex_unlock(&pool->lock);
    return pinned;
}

int slots_count(const struct slots *pool)
{
    return pool->n;
}

bool slots_idle(struct slots *pool)
{
    bool idle = true;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->n; i++)
        idle &= pool->slot[i].state == FREE;
    pthread_mutex_unlock(&pool->lock);
    return idle;
}
