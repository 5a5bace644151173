#include "daemon/base/clock.h"
#include "daemon/output/pool_impl.h"

static uint64_t bit(int holder)
{
    return UINT64_C(1) << holder;
}

// Under lock, of a held slot.
static bool is_held(const struct result *slot)
{
    return slot->state == SLOT_READY && slot->holders != 0;
}

void pool_hold(struct pool *pool, struct result *slot, int holder)
{
    pthread_mutex_lock(&pool->lock);
    slot->pins--;
    slot->holders |= bit(holder);
    slot->held_ns = monotonic_ns();
    pthread_cond_signal(&pool->room);
    pthread_mutex_unlock(&pool->lock);
}

void pool_give_back(struct pool *pool, int number, uint64_t ticket, int holder)
{
    struct result *slot = &pool->slot[number];
    pthread_mutex_lock(&pool->lock);
    if (is_held(slot) && slot->ticket == ticket && (slot->holders & bit(holder))) {
        slot->holders &= ~bit(holder);
        slot->delivered = true;
    }
    pthread_mutex_unlock(&pool->lock);
}

void pool_let_go(struct pool *pool, int holder)
{
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->n; i++)
        pool->slot[i].holders &= ~bit(holder);
    pthread_mutex_unlock(&pool->lock);
}

int64_t pool_expire(struct pool *pool, int64_t held_ns)
{
    int64_t first = 0;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->n; i++) {
        struct result *slot = &pool->slot[i];
        if (!is_held(slot))
            continue;
        if (slot->held_ns < held_ns)
            slot->holders = 0;
        else if (first == 0 || slot->held_ns < first)
            first = slot->held_ns;
    }
    pthread_mutex_unlock(&pool->lock);
    return first;
}

bool pool_holds(struct pool *pool, int holder)
{
    bool holds = false;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->n; i++)
        holds |= (pool->slot[i].holders & bit(holder)) != 0;
    pthread_mutex_unlock(&pool->lock);
    return holds;
}

// The ticket of the oldest slot that each holder has.
static void find_oldest(const struct pool *pool, uint64_t oldest[HOLDERS_MAX])
{
    for (int h = 0; h < HOLDERS_MAX; h++)
        oldest[h] = UINT64_MAX;
    for (int i = 0; i < pool->n; i++) {
        const struct result *slot = &pool->slot[i];
        for (uint64_t left = slot->holders; left; left &= left - 1) {
            uint64_t *known = &oldest[__builtin_ctzll(left)];
            *known = slot->ticket < *known ? slot->ticket : *known;
        }
    }
}

static bool all_have_older(const struct result *slot, const uint64_t oldest[HOLDERS_MAX])
{
    for (uint64_t left = slot->holders; left; left &= left - 1)
        if (oldest[__builtin_ctzll(left)] == slot->ticket)
            return false;
    return true;
}

struct result *pool_spare(struct pool *pool, bool delivered)
{
    struct result *found = NULL;
    uint64_t oldest[HOLDERS_MAX];
    find_oldest(pool, oldest);
    for (int i = 0; i < pool->n; i++) {
        struct result *slot = &pool->slot[i];
        if (slot->state == SLOT_READY && slot->pins == 0 && slot->delivered >= delivered &&
            (!found || slot->ticket < found->ticket) && all_have_older(slot, oldest))
            found = slot;
    }
    return found;
}
