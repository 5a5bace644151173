#include "daemon/output/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"

enum {
    FREE_MIN = 2,  // results that stalled consumers leave: one to fill while another is read
    HELD_PART = 5, // weight of the last result in pool.held_ns: 1/HELD_PART
};

static struct result *older_result(struct result *a, struct result *b)
{
    return !a || b->ticket < a->ticket ? b : a;
}

bool pool_waits(const struct pool *pool)
{
    return atomic_load(&pool->overflow) == OVERFLOW_WAIT;
}

// --- the end of a result

// What consumers that detached the same result's payload are still to get. Under the pool's lock.
struct delivery {
    int consumers;
    struct result *result; // NULL: it has ended
    bool emitted;          // a consumer got all of it, and it is counted
    int items;             // filled ones
    struct ledger *ledger[];
};

bool item_is_filled(const struct item *item)
{
    return item->state == ITEM_COMPLETE && item->status >= 0;
}

static int count_good(const struct result *result)
{
    int good = 0;
    for (int i = 0; i < result->n_items; i++)
        good += item_is_filled(&result->item[i]);
    return good;
}

// Returns the loss of a result's item if no consumer gets it. Lock held.
static enum loss loss_of(const struct pool *pool, const struct result *result,
                         const struct item *item)
{
    if (item->status < 0)
        return item->status == -ECANCELED ? LOSS_STOPPING : LOSS_BACKEND;
    if (result->loss != LOSSES)
        return result->loss;
    return pool->sink == POOL_SINK_STOPPED ? LOSS_STOPPING : pool->options.undelivered;
}

static void account_item(struct ledger *ledger, bool delivered, enum loss loss)
{
    if (!ledger)
        return; // another element counts, or the camera is gone
    if (delivered)
        ledger_emit(ledger);
    else
        ledger_lose(ledger, loss);
}

// Ends a result; no other place does. Clears the slot's word before the next result can be written
// there: that is how a late reader notices. A result with a payload that a consumer detached counts
// when that delivery ends, unless another consumer got it. Lock held.
void pool_end_result(struct pool *pool, struct result *result)
{
    struct delivery *delivery = result->delivery;
    for (int i = 0; i < result->n_items; i++) {
        struct item *item = &result->item[i];
        const bool filled = item_is_filled(item), delivered = filled && result->delivered;
        if (item->state != ITEM_EMPTY && (delivered || !filled || !delivery))
            account_item(item->ledger, delivered, loss_of(pool, result, item));
        item->state = ITEM_EMPTY;
    }
    for (struct consumer *c = pool->consumers; c; c = c->next)
        c->lent[result->number] = false;
    if (delivery) {
        delivery->emitted = result->delivered;
        delivery->result = NULL;
        result->delivery = NULL;
    }
    atomic_store(pool_region_word(result->region, result->number), 0);
    result->region->users--;
    result->region = NULL;
    result->state = RESULT_FREE;
    pthread_cond_broadcast(&pool->room);
}

// Returns true if the consumer has not reached the result yet.
static bool awaits(const struct consumer *consumer, const struct result *result)
{
    return consumer->cursor <= result->ticket;
}

// Ends a ready result that no consumer awaits, holds or was lent. Under OVERFLOW_WAIT ready results
// stay for the next consumer if there is none. Lock held.
static void end_unneeded(struct pool *pool, struct result *result)
{
    const bool kept = pool_waits(pool) && pool->n_consumers == 0 && pool->sink == POOL_SINK_OPEN;
    bool needed = kept || result->held > 0;
    for (const struct consumer *c = pool->consumers; c && !needed; c = c->next)
        needed = awaits(c, result) || c->lent[result->number];
    if (!needed)
        pool_end_result(pool, result);
}

// --- producers

// Returns the free result that is unused for longest; NULL: none. Lock held.
static struct result *find_free(struct pool *pool)
{
    struct result *found = NULL;
    for (int i = 0; i < pool->options.n; i++)
        if (pool->result[i].state == RESULT_FREE)
            found = older_result(found, &pool->result[i]);
    return found;
}

static bool is_oldest_lent(const struct pool *pool, const struct consumer *consumer,
                           const struct result *result)
{
    for (int i = 0; i < pool->options.n; i++)
        if (consumer->lent[i] && pool->result[i].ticket < result->ticket)
            return false;
    return consumer->lent[result->number];
}

// Returns the result to evict for a newer one, by the policy; NULL: none. Lock held.
static struct result *find_evictable(struct pool *pool)
{
    const bool newest = atomic_load(&pool->overflow) == OVERFLOW_DROP_NEWEST;
    struct result *passed = NULL, *other = NULL;
    for (int i = 0; i < pool->options.n; i++) {
        struct result *result = &pool->result[i];
        bool is_passed = false, is_lent = false, is_oldest = false;
        if (result->state != RESULT_READY || result->held > 0)
            continue;
        for (const struct consumer *c = pool->consumers; c; c = c->next) {
            is_passed |= !awaits(c, result);
            is_lent |= c->lent[i];
            is_oldest |= is_oldest_lent(pool, c, result);
        }
        if (is_passed && !is_lent)
            passed = older_result(passed, result); // it only waits for slower consumers
        if (!is_oldest && (result->delivered || !newest))
            other = older_result(other, result);
    }
    return newest && passed ? passed : other;
}

int pool_check_sink(const struct pool *pool)
{
    if (pool->sink == POOL_SINK_REFUSED)
        return -EPIPE;
    if (pool->sink != POOL_SINK_OPEN)
        return -ESHUTDOWN;
    return pool->n_consumers == 0 ? -ENOTCONN : 0;
}

// Lock held.
static bool is_worth_waiting(struct pool *pool)
{
    if (pool->sink != POOL_SINK_OPEN)
        return false;
    if (pool->n_consumers == 0)
        return pool_waits(pool);
    return !find_free(pool);
}

struct result *pool_find_room(struct pool *pool, bool evicts)
{
    struct result *found = find_free(pool);
    if (!found && evicts && (found = find_evictable(pool))) {
        found->loss = LOSS_OVERFLOW;
        pool_end_result(pool, found);
    }
    return found;
}

// Finds the result to claim, by the policy. Returns 0 or an error of pool_claim. Lock held.
static int wait_for_room(struct pool *pool, const struct pool_request *request, struct result **ret)
{
    bool waits = pool_waits(pool);
    int64_t until_ns = waits ? INT64_MAX : request->wait_until_ns;
    while (!atomic_load(request->stop) && is_worth_waiting(pool) && monotonic_ns() < until_ns)
        condition_wait(&pool->room, &pool->lock, until_ns);
    if (atomic_load(request->stop))
        return -ECANCELED;
    int rc = pool_check_sink(pool);
    if (rc < 0)
        return rc;
    *ret = pool_find_room(pool, !waits);
    return *ret ? 0 : -EAGAIN;
}

void pool_begin_result(struct pool *pool, struct result *result, const struct pool_request *request)
{
    struct pool_region *region = pool->region;
    region->users++;
    result->region = region;
    result->data = pool_region_data(region, result->number);
    result->n_items = request->items;
    result->size = request->size * (size_t)request->items;
    result->memory = pool_region_on_device(region) ? MEMORY_CUDA : region->host.memory;
    result->ticket = pool->next_ticket++;
    result->state = RESULT_FILLING;
    result->sealed = false;
    result->closed_by = CLOSED_NOT;
    result->filling = 0;
    result->held = 0;
    result->delivered = false;
    result->loss = LOSSES;
    for (int i = 0; i < pool->options.items && result->generation != region->generation; i++)
        result->item[i].valid_op = 0;
    result->generation = region->generation;
}

void pool_claim_items(struct result *result, int first, int n, struct ledger *ledger)
{
    for (int i = first; i < first + n; i++) {
        result->item[i].state = ITEM_FILLING;
        result->item[i].status = 0;
        result->item[i].ledger = i == first ? ledger : NULL;
    }
    result->filling += n;
}

int pool_claim(struct pool *pool, struct pool_request *request, struct result **ret)
{
    const size_t size = request->size * (size_t)request->items;
    int rc;
    pthread_mutex_lock(&pool->lock);
    while ((rc = wait_for_room(pool, request, ret)) == 0 && !pool_region_fits(pool, size))
        if ((rc = pool_open_region(pool, size, &request->opening_ns)) < 0)
            break;
    if (rc == 0) {
        pool_begin_result(pool, *ret, request);
        pool_claim_items(*ret, 0, request->items, request->ledger);
        (*ret)->sealed = true;
    }
    bool moved = pool->regions && pool->regions->next;
    pthread_mutex_unlock(&pool->lock);
    if (moved)
        pool_close_unused_regions(pool);
    return rc;
}

// Returns the result claimed as `ticket`, or NULL if it has ended. Lock held.
static struct result *find_ticket(struct pool *pool, uint64_t ticket)
{
    for (int i = 0; i < pool->options.n; i++)
        if (pool->result[i].state != RESULT_FREE && pool->result[i].ticket == ticket)
            return &pool->result[i];
    return NULL;
}

void pool_publish_done(struct pool *pool)
{
    while (pool->head < pool->next_ticket) {
        struct result *result = find_ticket(pool, pool->head);
        if (result && (!result->sealed || result->filling > 0))
            break;
        pool->head++;
        if (!result) // it ended with its device
            continue;
        if (count_good(result) == 0) {
            pool_end_result(pool, result);
            continue;
        }
        result->state = RESULT_READY;
        atomic_store(pool_region_word(result->region, result->number), result->ticket);
        end_unneeded(pool, result);
    }
}

bool pool_is_filling(struct pool *pool)
{
    bool found = false;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->options.n && pool->sink != POOL_SINK_STOPPED; i++)
        found |= pool->result[i].state == RESULT_FILLING;
    pthread_mutex_unlock(&pool->lock);
    return found;
}

void pool_seal(struct pool *pool, struct result *result)
{
    result->sealed = true;
    pool_publish_done(pool);
}

void pool_complete_items(struct pool *pool, struct result *result, int first, int n, int status)
{
    const int64_t now_ns = monotonic_ns();
    for (int i = first; i < first + n; i++) {
        struct item *item = &result->item[i];
        item->finished_ns = now_ns;
        item->status = status;
        item->state = ITEM_COMPLETE;
        if (status < 0)
            item->valid_op = 0;
    }
    result->filling -= n;
    pool_publish_done(pool);
}

void pool_complete(struct pool *pool, struct result *result, int first, int n, int status)
{
    pthread_mutex_lock(&pool->lock);
    pool_complete_items(pool, result, first, n, status);
    pthread_mutex_unlock(&pool->lock);
}

void pool_forget_ledger(struct pool *pool, struct ledger *ledger)
{
    pthread_mutex_lock(&pool->lock);
    for (int r = 0; r < pool->options.n; r++) {
        const struct result *result = &pool->result[r];
        for (int i = 0; i < result->n_items && result->state != RESULT_FREE; i++) {
            if (result->item[i].ledger != ledger)
                continue;
            result->item[i].ledger = NULL;
            if (result->delivered && item_is_filled(&result->item[i]))
                ledger_emit(ledger);
        }
    }
    for (struct consumer *c = pool->consumers; c; c = c->next)
        for (int i = 0; c->pending && i < c->pending->items; i++)
            if (c->pending->ledger[i] == ledger)
                c->pending->ledger[i] = NULL;
    // At once, whatever the count: a wrong one is logged with the account.
    const int64_t left = ledger_in_flight(ledger);
    atomic_fetch_add(&ledger->lost[LOSS_STOPPING], (uint64_t)(left > 0 ? left : 0));
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
    const bool stops = sink == POOL_SINK_STOPPED;
    pthread_mutex_lock(&pool->lock);
    pool->sink = sink;
    for (struct consumer *c = pool->consumers; c && stops; c = c->next) {
        for (int i = 0; i < pool->options.n; i++)
            if (pool->result[i].state == RESULT_READY && awaits(c, &pool->result[i]))
                pool->result[i].loss = LOSSES;
        c->cursor = UINT64_MAX;
    }
    for (int i = 0; i < pool->options.n; i++)
        if (pool->result[i].state == RESULT_READY)
            end_unneeded(pool, &pool->result[i]);
    pthread_cond_broadcast(&pool->room);
    pthread_mutex_unlock(&pool->lock);
}

void pool_attach(struct pool *pool, struct consumer *consumer)
{
    pthread_mutex_lock(&pool->lock);
    const bool takes_all = pool_waits(pool) && pool->n_consumers == 0;
    *consumer = (struct consumer){.next = pool->consumers, .cursor = takes_all ? 0 : pool->head};
    pool->consumers = consumer;
    pool->n_consumers++;
    pthread_cond_broadcast(&pool->room);
    pthread_mutex_unlock(&pool->lock);
}

// Ends the consumer's part in the pending delivery. Lock held.
static void end_delivery(struct pool *pool, struct consumer *consumer, bool delivered)
{
    struct delivery *delivery = consumer->pending;
    struct result *result = delivery->result;
    const bool last = --delivery->consumers == 0;
    consumer->pending = NULL;
    if (result) {
        result->delivered |= delivered;
        if (last)
            result->delivery = NULL;
    } else if (!delivery->emitted && (delivered || last)) {
        delivery->emitted = true;
        for (int i = 0; i < delivery->items; i++)
            account_item(delivery->ledger[i], delivered, pool->options.undelivered);
    }
    if (last)
        free(delivery);
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
        const bool holds = consumer->held == result;
        if (result->state != RESULT_READY ||
            !(holds || awaits(consumer, result) || consumer->lent[i]))
            continue;
        result->held -= holds;
        result->loss = LOSSES;
        end_unneeded(pool, result);
    }
    if (consumer->pending)
        end_delivery(pool, consumer, false);
    pthread_cond_broadcast(&pool->room);
    pthread_mutex_unlock(&pool->lock);
}

struct consumer_report pool_report(struct pool *pool, const struct consumer *consumer)
{
    pthread_mutex_lock(&pool->lock);
    struct consumer_report report = {
        .held = consumer->held || consumer->pending,
        .taken = consumer->taken,
        .missed = consumer->missed,
    };
    for (int i = 0; i < pool->options.n; i++) {
        const struct result *result = &pool->result[i];
        report.behind += result->state == RESULT_READY && awaits(consumer, result);
        report.held += consumer->lent[i];
    }
    pthread_mutex_unlock(&pool->lock);
    return report;
}

bool pool_has_next(struct pool *pool, const struct consumer *consumer)
{
    return consumer->cursor < atomic_load(&pool->head);
}

// A result is as old as its newest item.
static bool is_late(const struct pool *pool, const struct result *result)
{
    for (int i = 0; i < result->n_items; i++)
        if (item_is_filled(&result->item[i]) &&
            !frame_is_late(&result->item[i].frame, pool->options.max_age_ns))
            return false;
    return true;
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
        if (consumer->cursor) // else it takes earlier ready results
            consumer->missed += (found ? found->ticket : pool->head) - consumer->cursor;
        consumer->cursor = found ? found->ticket + 1 : pool->head;
        if (!found)
            break;
        if (!is_late(pool, found)) {
            found->held++;
            consumer->taken++;
            consumer->acquired_ns = monotonic_ns();
            break;
        }
        found->loss = LOSS_LATE;
        consumer->missed++;
        end_unneeded(pool, found);
    } while (true);
    consumer->held = found;
    pthread_mutex_unlock(&pool->lock);
    return found;
}

// Adds the time for which a consumer kept a result to the mean. Lock held.
static void observe_held(struct pool *pool, int64_t ns)
{
    pool->held_ns += (ns - pool->held_ns) / HELD_PART;
}

// Lock held.
static struct result *end_hold(struct pool *pool, struct consumer *consumer)
{
    struct result *result = consumer->held;
    consumer->held = NULL;
    result->held--;
    pthread_cond_broadcast(&pool->room); // pool_remove_backend may wait for it
    return result;
}

void pool_release(struct pool *pool, struct consumer *consumer, bool delivered)
{
    pthread_mutex_lock(&pool->lock);
    if (consumer->held) {
        struct result *result = end_hold(pool, consumer);
        observe_held(pool, monotonic_ns() - consumer->acquired_ns);
        result->delivered |= delivered;
        if (!delivered)
            result->loss = pool->options.undelivered;
        end_unneeded(pool, result);
    } else if (consumer->pending) {
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

// Lock held.
static struct delivery *open_delivery(struct result *result)
{
    struct delivery *delivery =
        calloc(1, sizeof *delivery + (size_t)result->n_items * sizeof delivery->ledger[0]);
    if (!delivery)
        return NULL;
    for (int i = 0; i < result->n_items; i++)
        if (item_is_filled(&result->item[i]))
            delivery->ledger[delivery->items++] = result->item[i].ledger;
    delivery->result = result;
    return delivery;
}

int pool_detach_payload(struct pool *pool, struct consumer *consumer)
{
    pthread_mutex_lock(&pool->lock);
    struct result *result = consumer->held;
    if (!result->delivery)
        result->delivery = open_delivery(result);
    if (result->delivery) {
        consumer->pending = result->delivery;
        consumer->pending->consumers++;
        end_unneeded(pool, end_hold(pool, consumer));
    }
    pthread_mutex_unlock(&pool->lock);
    return consumer->pending ? 0 : -ENOMEM;
}

void pool_lend(struct pool *pool, struct consumer *consumer, bool notified)
{
    pthread_mutex_lock(&pool->lock);
    struct result *result = end_hold(pool, consumer);
    if (notified) {
        consumer->lent[result->number] = true;
        result->lent_ns = monotonic_ns();
    } else {
        consumer->cursor = result->ticket;
        consumer->taken--;
    }
    pthread_mutex_unlock(&pool->lock);
}

// Returns the result lent in that slot as `ticket`; NULL: it was revoked, or there is no such slot.
// Lock held.
static struct result *find_lent(struct pool *pool, const struct consumer *consumer, uint32_t number,
                                uint64_t ticket)
{
    const bool lent = number < (uint32_t)pool->options.n && consumer->lent[number];
    return lent && pool->result[number].ticket == ticket ? &pool->result[number] : NULL;
}

int pool_return(struct pool *pool, struct consumer *consumer, uint32_t number, uint64_t ticket)
{
    if (number >= (uint32_t)pool->options.n)
        return -EINVAL;
    pthread_mutex_lock(&pool->lock);
    struct result *result = find_lent(pool, consumer, number, ticket);
    if (result) {
        consumer->lent[number] = false;
        observe_held(pool, monotonic_ns() - result->lent_ns);
        result->delivered = true;
        end_unneeded(pool, result);
    }
    pthread_mutex_unlock(&pool->lock);
    return result != NULL;
}

bool pool_has_lent(struct pool *pool, const struct consumer *consumer, uint32_t number,
                   uint64_t ticket)
{
    pthread_mutex_lock(&pool->lock);
    const bool has = find_lent(pool, consumer, number, ticket);
    pthread_mutex_unlock(&pool->lock);
    return has;
}

int64_t pool_revoke(struct pool *pool, int64_t lent_ns)
{
    int64_t first = INT64_MAX;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->options.n; i++) {
        struct result *result = &pool->result[i];
        bool lent = false;
        for (struct consumer *c = pool->consumers; c; c = c->next) {
            lent |= c->lent[i];
            c->lent[i] &= result->lent_ns >= lent_ns;
        }
        if (lent && result->lent_ns >= lent_ns) {
            first = result->lent_ns < first ? result->lent_ns : first;
        } else if (lent) {
            result->loss = LOSS_LATE;
            end_unneeded(pool, result);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return first < INT64_MAX ? first : 0;
}

bool pool_is_busy(struct pool *pool, const struct consumer *consumer)
{
    return pool_report(pool, consumer).held > 0;
}

// --- life

int pool_open(struct pool **ret, const struct pool_options *options)
{
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
    pool->overflow = options->overflow;
    for (int i = 0; i < options->n; i++) {
        pool->result[i].number = i;
        pool->result[i].item = item + (size_t)i * items;
    }
    pool->next_ticket = 1;
    pool->head = 1;
    pthread_mutex_init(&pool->memory_lock, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    condition_init(&pool->room);
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
            pool_end_result(pool, &pool->result[i]);
    pool->region = NULL;
    pool_close_unused_regions(pool);
    pthread_cond_destroy(&pool->room);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->memory_lock);
    free(pool->result[0].item);
    free(pool);
}
