#include "daemon/output/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"

static const int64_t LIVE_NS = 250 * 1000000;          // least time that a member stays live
static const int64_t GAP_NS = 2000 * INT64_C(1000000); // a longer gap resets the period
static const int64_t WAIT_MIN_NS = 2 * 1000000;        // least wait by the periods
static const int64_t WAIT_MAX_NS = 100 * 1000000;      // most wait by the periods; wait without any
static const int64_t PARKED_NS = 500 * 1000000; // longest wait when parked, whatever max_age is
static const uint64_t OP_OF_FILL = UINT64_MAX;  // as an item's valid_op: no op has that serial
enum { LIVE_PERIODS = 3, PERIODS_MIN = 7 };     // PERIODS_MIN: to know their mean

const char *batch_close_name(enum batch_close reason)
{
    static const char *const names[] = {
        [CLOSED_NOT] = "not",   [CLOSED_FULL] = "full",     [CLOSED_ALL] = "all",
        [CLOSED_WAIT] = "wait", [CLOSED_RELOAD] = "reload", [CLOSED_STOPPING] = "stopping",
    };
    return names[reason];
}

static void lock(const struct batch *batch)
{
    pthread_mutex_lock(&batch->options.pool->lock);
}

// Also releases the lost frame, which takes other locks.
static void unlock(struct batch *batch)
{
    struct frame lost = batch->lost;
    batch->lost = (struct frame){0};
    pthread_mutex_unlock(&batch->options.pool->lock);
    frame_release(&lost);
}

// Lock held, as in all functions below that batch.h does not declare.
static void wake_all(const struct batch *batch)
{
    pthread_cond_broadcast(&batch->options.pool->room);
}

// --- members

// Returns 0 if unknown.
static int64_t period_of(const struct batch_member *member)
{
    if (member->periods < PERIODS_MIN)
        return 0;
    return (member->arrived_ns - member->measured_ns) / member->periods;
}

// A full measurement drops its older half.
static void note_arrival(struct batch_member *member, int64_t now_ns)
{
    if (now_ns - member->arrived_ns > GAP_NS) {
        member->measured_ns = now_ns;
        member->periods = -1;
    } else if (member->periods == BATCH_PERIODS) {
        member->measured_ns += (member->arrived_ns - member->measured_ns) / 2;
        member->periods /= 2;
    }
    member->arrived_ns = now_ns;
    member->periods++;
    member->missed = false;
}

static bool is_live(const struct batch_member *member, int64_t now_ns)
{
    const int64_t periods = LIVE_PERIODS * period_of(member);
    return member->arrived_ns > 0 && !member->missed &&
           now_ns - member->arrived_ns < (periods > LIVE_NS ? periods : LIVE_NS);
}

// Returns how long a batch opened now stays open.
static int64_t wait_of(const struct batch *batch, int64_t now_ns)
{
    int64_t shortest = INT64_MAX;
    if (batch->options.wait_ns >= 0)
        return batch->options.wait_ns;
    for (const struct batch_member *m = batch->members; m; m = m->next)
        if (is_live(m, now_ns) && period_of(m) > 0 && period_of(m) < shortest)
            shortest = period_of(m);
    if (shortest == INT64_MAX)
        return WAIT_MAX_NS;
    const int64_t wait = shortest - batch->options.pool->held_ns;
    return wait < WAIT_MIN_NS ? WAIT_MIN_NS : wait > WAIT_MAX_NS ? WAIT_MAX_NS : wait;
}

static int pictures_in_open(const struct batch_member *member)
{
    return member->ticket == member->batch->open_ticket ? member->pictures : 0;
}

// --- the open batch

// The pool may have ended the open batch with its device.
static bool is_open(const struct batch *batch)
{
    const struct result *open = batch->open;
    return open && open->ticket == batch->open_ticket && open->state == RESULT_FILLING &&
           !open->sealed;
}

static int count_empty(const struct result *result)
{
    int n = 0;
    for (int i = 0; i < result->n_items; i++)
        n += result->item[i].state == ITEM_EMPTY;
    return n;
}

static void count_closed(struct batch *batch, const struct result *result)
{
    const int n = result->n_items - count_empty(result);
    int bucket = 0;
    while (1 << bucket < n && bucket < BATCH_FILL_BUCKETS - 1)
        bucket++;
    atomic_fetch_add(&batch->by_filled[bucket], 1);
    atomic_fetch_add(&batch->elements, (uint64_t)n);
    atomic_fetch_add(&batch->closed[result->closed_by], 1);
    histogram_observe(&batch->wait, result->closed_ns - result->opened_ns);
}

// Returns a tensor of fill only, or NULL without memory.
static void *make_blank(const struct batch_request *request)
{
    const struct result_format *format = &request->format;
    const size_t width = format->dtype == DTYPE_F32 ? 4 : format->dtype == DTYPE_F16 ? 2 : 1;
    const size_t channels = format->order == ORDER_GRAY ? 1 : 3;
    const size_t n = request->size / width, plane = n / channels;
    uint8_t *blank = malloc(request->size);
    for (size_t i = 0; blank && i < n; i++) {
        const size_t channel = format->layout == LAYOUT_NCHW ? i / plane : i % channels;
        memcpy(blank + i * width, &request->fill[channel], width); // little-endian
    }
    return blank;
}

// Lock not held.
static void fill_item(const struct batch *batch, struct result *result, int item)
{
    const struct region *device = &result->region->device;
    uint8_t *to = (uint8_t *)result->data + (size_t)item * batch->item_size;
    int rc = 0;
    if (result->memory == MEMORY_CUDA)
        rc = device->driver->export_write(device->backend, to, batch->blank, batch->item_size);
    else
        memcpy(to, batch->blank, batch->item_size);
    result->item[item].valid_op = rc == 0 ? OP_OF_FILL : 0; // the next job detects the failure
}

// Returns true if the result is closed and only its empty items need fill.
static bool is_unfilled(const struct result *result)
{
    return result->state == RESULT_FILLING && result->closed_by != CLOSED_NOT && !result->sealed &&
           result->filling == 0;
}

// Returns the number of items that consumers see: without `fills_tail` up to the last that has, or
// may get, a picture.
static int count_seen(const struct batch *batch, const struct result *result)
{
    int n = result->n_items;
    while (n > 0 && !batch->options.fills_tail && result->item[n - 1].state != ITEM_FILLING &&
           !item_is_filled(&result->item[n - 1]))
        n--;
    return n;
}

// Returns the first item, from `i` on, that consumers would see with pixels of an earlier batch:
// without a picture, and without fill. -1: there is none.
static int next_hole(const struct batch *batch, const struct result *result, int i)
{
    for (const int n = count_seen(batch, result); i < n; i++)
        if (result->item[i].state != ITEM_FILLING && !item_is_filled(&result->item[i]) &&
            result->item[i].valid_op != OP_OF_FILL)
            return i;
    return -1;
}

// Fills the empty items of closed batches and delivers these; returns false if there are none. Only
// for the collector: releases the lock meanwhile, because it writes megabytes, or to a device.
static bool fill_closed(struct batch *batch)
{
    struct pool *pool = batch->options.pool;
    bool any = false;
    for (int i = 0; i < pool->options.n; i++) {
        struct result *result = &pool->result[i];
        if (!is_unfilled(result))
            continue;
        result->held++; // keeps its device
        unlock(batch);
        for (int hole = 0; (hole = next_hole(batch, result, hole)) >= 0; hole++)
            fill_item(batch, result, hole);
        lock(batch);
        result->held--;
        wake_all(batch);
        pool_seal(pool, result);
        batch->announce = any = true;
    }
    return any;
}

// Closes the open batch, if there is one.
static void close_open(struct batch *batch, enum batch_close reason)
{
    struct result *open = batch->open;
    if (!is_open(batch))
        return;
    batch->open = NULL;
    batch->announce = true;
    wake_all(batch);
    for (struct batch_member *m = batch->members; m && reason == CLOSED_WAIT; m = m->next)
        m->missed |= m->ticket != open->ticket && m->n_parked == 0;
    if (count_empty(open) == open->n_items) { // the jobs of all its pictures failed: not a batch
        pool_seal(batch->options.pool, open);
        return;
    }
    open->closed_by = reason;
    open->closed_ns = monotonic_ns();
    open->batch_sequence = batch->sequence++;
    count_closed(batch, open);
    if (next_hole(batch, open, 0) < 0)
        pool_seal(batch->options.pool, open); // else fill_closed does so
}

// Returns the first item of a free run for the member's picture; -1: none.
static int find_items(const struct batch_member *member, int parts)
{
    const struct batch *batch = member->batch;
    const struct result *open = batch->open;
    const int begin = batch->options.fixed ? member->first : 0;
    const int end = batch->options.fixed ? begin + member->n : open->n_items;
    int run = 0;
    for (int i = begin; i < end; i++) {
        run = open->item[i].state == ITEM_EMPTY ? run + 1 : 0;
        if (run == parts)
            return i + 1 - parts;
    }
    return -1;
}

static bool has_room_for(const struct batch_member *member, int parts)
{
    return pictures_in_open(member) < member->batch->options.per_camera &&
           find_items(member, parts) >= 0;
}

// Returns true if all live members are in the batch, except those whose parked pictures do not fit.
static bool has_all(const struct batch *batch, int64_t now_ns)
{
    for (const struct batch_member *m = batch->members; m; m = m->next) {
        const bool fits = m->n_parked == 0 || has_room_for(m, m->parts);
        if (is_live(m, now_ns) && pictures_in_open(m) == 0 && !m->unplaced && fits)
            return false;
    }
    return true;
}

static void close_when_due(struct batch *batch)
{
    const int64_t now_ns = monotonic_ns();
    if (!is_open(batch))
        return;
    if (count_empty(batch->open) == 0)
        close_open(batch, CLOSED_FULL);
    else if (has_all(batch, now_ns))
        close_open(batch, CLOSED_ALL);
    else if (now_ns >= batch->due_ns)
        close_open(batch, CLOSED_WAIT);
}

// Returns true if no other member has any of these items under `fixed`.
static bool are_unreserved(const struct batch_member *member, int first, int n)
{
    if (first + n > member->batch->options.capacity)
        return false;
    for (const struct batch_member *m = member->batch->members; m; m = m->next) {
        const bool awaited = m->n == 0 && !m->unplaced; // its first picture is yet to come
        const int from = awaited ? m->index * n : m->first, to = from + (awaited ? n : m->n);
        if (m->index != member->index && from < first + n && first < to)
            return false;
    }
    return true;
}

// Under `fixed` reserves items for the member's pictures of `parts` items: by its index, which fits
// if all members have as many, else the first that are free. Returns 0 or -ENOSPC.
static int reserve_items(struct batch_member *member, int parts)
{
    const struct batch_options *options = &member->batch->options;
    if (!options->fixed || member->n == parts)
        return 0;
    for (int i = -1; i < options->capacity; i++) {
        const int first = i < 0 ? member->index * parts : i;
        if (!are_unreserved(member, first, parts))
            continue;
        member->first = first;
        member->n = parts;
        member->unplaced = false;
        return 0;
    }
    member->n = 0;
    member->unplaced = true;
    return -ENOSPC;
}

// Opens the next batch if there is a free result. Releases the lock while memory is opened, unless
// it returns -EAGAIN. Returns 0, -EAGAIN or -ENOMEM.
static int open_next(struct batch *batch, int64_t *opening_ns)
{
    struct pool *pool = batch->options.pool;
    const struct pool_request request = {.size = batch->item_size,
                                         .items = batch->options.capacity};
    const size_t size = request.size * (size_t)request.items;
    struct result *result = NULL;
    int rc = 0;
    while (rc == 0 && !batch->opening && (result = pool_find_room(pool, !pool_waits(pool))) &&
           !pool_region_fits(pool, size)) {
        batch->opening = true;
        rc = pool_open_region(pool, size, opening_ns);
        batch->opening = false;
        wake_all(batch); // for pictures parked meanwhile
    }
    if (rc == 0 && !result)
        rc = -EAGAIN;
    if (rc < 0)
        return rc;
    pool_begin_result(pool, result, &request);
    result->format = batch->format;
    for (int i = 0; i < PLANES_MAX && result->format.image.plane[i].stride > 0; i++)
        result->format.image.plane[i].data =
            (uint8_t *)result->data + (uintptr_t)batch->format.image.plane[i].data;
    result->opened_ns = monotonic_ns();
    batch->open = result;
    batch->open_ticket = result->ticket;
    batch->due_ns = result->opened_ns + wait_of(batch, result->opened_ns);
    wake_all(batch);
    return 0;
}

// Records in the first of a picture's items the losses before it.
static void mark_item(struct batch_member *member, struct item *item, uint64_t ordinal,
                      uint32_t epoch)
{
    item->new_epoch =
        !member->position.begun || member->position.epoch != epoch || member->position.epoch_failed;
    if (member->position.begun)
        member->position.lost += ordinal - member->position.expected;
    item->lost = member->position.lost;
    member->position.begun = true;
    member->position.epoch_failed = false;
    member->position.epoch = epoch;
    member->position.expected = ordinal + 1;
}

// Claims items of the open batch, which has room, and closes it if that makes it due. Returns the
// first one, in *ret.
static int claim_items(struct batch_member *member, int parts, uint64_t ordinal, uint32_t epoch,
                       struct result **ret)
{
    struct batch *batch = member->batch;
    const int first = find_items(member, parts);
    member->pictures = pictures_in_open(member) + 1;
    member->ticket = batch->open_ticket;
    member->served = ++batch->serial;
    pool_claim_items(batch->open, first, parts, member->ledger);
    mark_item(member, &batch->open->item[first], ordinal, epoch);
    *ret = batch->open;
    close_when_due(batch);
    return first;
}

// --- parked pictures

// Returns the next member with a parked picture to serve: of all, or of members with room in the
// open batch.
static struct batch_member *next_waiting(const struct batch *batch)
{
    const bool open = is_open(batch);
    struct batch_member *found = NULL;
    for (struct batch_member *m = batch->members; m && batch->n_parked > 0; m = m->next)
        if (m->n_parked > 0 && (!found || m->served < found->served) &&
            (!open || has_room_for(m, m->parts)))
            found = m;
    return found;
}

static struct parked unpark(struct batch_member *member)
{
    const struct parked oldest = member->parked[0];
    member->n_parked--;
    member->batch->n_parked--;
    memmove(member->parked, member->parked + 1, (size_t)member->n_parked * sizeof oldest);
    wake_all(member->batch);
    return oldest;
}

// Loses the member's oldest parked picture; its frame is released with the lock, which must be
// soon.
static void lose_oldest(struct batch_member *member, enum loss reason)
{
    ledger_lose(member->ledger, reason);
    member->batch->lost = unpark(member).frame;
}

// Closes the open batch if the pool's memory moved: to a larger region, or another device.
static void close_moved(struct batch *batch)
{
    const struct pool *pool = batch->options.pool;
    if (is_open(batch) && (batch->open->region != pool->region ||
                           pool_region_on_device(pool->region) != pool->wants_device))
        close_open(batch, CLOSED_RELOAD);
}

// Returns true if a new picture of the member may be served at once, as no parked one comes first.
static bool is_next(const struct batch_member *member, int parts)
{
    const struct batch *batch = member->batch;
    if (member->n_parked > 0 || next_waiting(batch))
        return false;
    return !is_open(batch) || has_room_for(member, parts);
}

void batch_wait(struct batch_member *member, int parked, const _Atomic bool *stop)
{
    struct batch *batch = member->batch;
    struct pool *pool = batch->options.pool;
    lock(batch);
    while (member->overflow == OVERFLOW_WAIT && member->n_parked > parked && !atomic_load(stop) &&
           !batch->stopped && pool->sink == POOL_SINK_OPEN)
        pthread_cond_wait(&pool->room, &pool->lock);
    unlock(batch);
}

// Takes the format of the first picture: all later ones have the same.
static int learn_format(struct batch *batch, const struct batch_request *request)
{
    if (batch->item_size > 0)
        return 0;
    if (!(batch->blank = make_blank(request)))
        return -ENOMEM;
    batch->item_size = request->size;
    batch->format = request->format;
    return 0;
}

int batch_claim(struct batch_member *member, struct batch_request *request, struct result **ret,
                int *first)
{
    struct batch *batch = member->batch;
    lock(batch);
    note_arrival(member, monotonic_ns());
    int rc = learn_format(batch, request);
    close_moved(batch);
    if (rc == 0)
        rc = pool_check_sink(batch->options.pool);
    if (rc == -ENOTCONN && member->overflow == OVERFLOW_WAIT)
        rc = -EAGAIN;
    if (rc == 0)
        rc = reserve_items(member, request->parts);
    if (rc == 0)
        rc = is_next(member, request->parts) ? 0 : -EAGAIN;
    if (rc == 0 && !is_open(batch))
        rc = open_next(batch, &request->opening_ns);
    if (rc == 0 && !has_room_for(member, request->parts)) // opening released the lock
        rc = -EAGAIN;
    if (rc == 0)
        *first = claim_items(member, request->parts, request->ordinal, request->epoch, ret);
    unlock(batch);
    return rc;
}

// Under OVERFLOW_WAIT more than BATCH_PARKED_WAIT are parked only if waiting was pointless.
static int parked_max(const struct parked *parked)
{
    return parked->frame.image.memory == MEMORY_CUDA ? BATCH_PARKED_DEVICE : BATCH_PARKED_MAX;
}

void batch_park(struct batch_member *member, struct parked *parked, int parts)
{
    struct batch *batch = member->batch;
    lock(batch);
    const bool full = member->n_parked >= parked_max(parked);
    if (full && member->overflow == OVERFLOW_DROP_NEWEST) {
        ledger_lose(member->ledger, LOSS_OVERFLOW);
        batch->lost = parked->frame;
    } else {
        if (full)
            lose_oldest(member, LOSS_OVERFLOW);
        parked->since_ns = monotonic_ns();
        member->parked[member->n_parked++] = *parked;
        member->parts = parts;
        batch->n_parked++;
        wake_all(batch);
    }
    unlock(batch);
    *parked = (struct parked){0};
}

void batch_withdraw(struct batch_member *member, enum loss reason)
{
    struct batch *batch = member->batch;
    struct pool *pool = batch->options.pool;
    lock(batch);
    if (pool->sink != POOL_SINK_OPEN)
        reason = pool->sink == POOL_SINK_REFUSED ? LOSS_SINK : LOSS_STOPPING;
    while (member->n_parked > 0) {
        lose_oldest(member, reason);
        unlock(batch);
        lock(batch);
    }
    while (batch->submitting == member)
        pthread_cond_wait(&pool->room, &pool->lock);
    unlock(batch);
}

void batch_complete(struct batch_member *member, struct result *result, int first, int n,
                    int status)
{
    struct batch *batch = member->batch;
    lock(batch);
    const bool again = status < 0 && is_open(batch) && batch->open == result;
    if (status < 0) {
        member->position.lost++; // items claimed from now on report it
        member->position.epoch_failed |= result->item[first].new_epoch;
    }
    if (again) {
        for (int i = first; i < first + n; i++) {
            result->item[i].state = ITEM_EMPTY;
            result->item[i].valid_op = 0;
        }
        ledger_lose(member->ledger, status == -ECANCELED ? LOSS_STOPPING : LOSS_BACKEND);
        result->filling -= n;
        member->pictures--;
    } else {
        if (status < 0 && result->state == RESULT_FILLING)
            result->sealed = false; // fill_closed fills the hole
        pool_complete_items(batch->options.pool, result, first, n, status);
    }
    if (again || is_unfilled(result))
        wake_all(batch);
    unlock(batch);
}

// --- the collector

// Returns when the member's first parked picture is overdue (CLOCK_MONOTONIC).
static int64_t overdue_ns(const struct batch_member *member)
{
    const int64_t late_ns = frame_late_ns(&member->parked[0].frame.info, member->max_age_ns);
    const int64_t parked_ns =
        member->overflow == OVERFLOW_WAIT ? INT64_MAX : member->parked[0].since_ns + PARKED_NS;
    return late_ns < parked_ns ? late_ns : parked_ns;
}

// Loses the first overdue picture. Returns false if there is none.
static bool lose_overdue(struct batch *batch)
{
    const int64_t now_ns = monotonic_ns();
    for (struct batch_member *m = batch->members; m && batch->n_parked > 0; m = m->next) {
        if (m->n_parked == 0 || now_ns < overdue_ns(m))
            continue;
        const bool late = now_ns >= frame_late_ns(&m->parked[0].frame.info, m->max_age_ns);
        lose_oldest(m, late ? LOSS_LATE : LOSS_OVERFLOW);
        return true;
    }
    return false;
}

// Takes the next parked picture with room. Without memory it is lost. Returns false if nothing
// changed.
static bool serve_next(struct batch *batch, struct batch_grant *ret)
{
    struct batch_member *member = next_waiting(batch);
    int64_t opening_ns = 0;
    if (!member || pool_check_sink(batch->options.pool) < 0)
        return false;
    if (!is_open(batch)) {
        const int rc = open_next(batch, &opening_ns);
        member = next_waiting(batch); // opening may have released the lock
        if (rc == -ENOMEM && member)
            lose_oldest(member, LOSS_BACKEND);
        if (rc < 0 || !member)
            return rc != -EAGAIN;
    }
    const struct parked parked = unpark(member);
    *ret = (struct batch_grant){.member = member, .parked = parked, .parts = member->parts};
    batch->submitting = member;
    ret->first =
        claim_items(member, member->parts, parked.ordinal, parked.frame.info.epoch, &ret->result);
    return true;
}

// Waits for a change, the end of the open batch's wait, or an overdue picture.
static void wait_for_change(struct batch *batch)
{
    int64_t until_ns = is_open(batch) ? batch->due_ns : INT64_MAX;
    for (const struct batch_member *m = batch->members; m; m = m->next) {
        const int64_t due_ns = m->n_parked > 0 ? overdue_ns(m) : INT64_MAX;
        until_ns = due_ns < until_ns ? due_ns : until_ns;
    }
    condition_wait(&batch->options.pool->room, &batch->options.pool->lock, until_ns);
}

// Closes the open batch if memory moved, the sink stopped or it is due.
static void update_open(struct batch *batch)
{
    close_moved(batch);
    if (batch->options.pool->sink != POOL_SINK_OPEN || batch->stopped)
        close_open(batch, CLOSED_STOPPING);
    else
        close_when_due(batch);
}

int batch_take(struct batch *batch, struct batch_grant *ret)
{
    struct pool *pool = batch->options.pool;
    *ret = (struct batch_grant){0};
    lock(batch);
    if (batch->submitting)
        wake_all(batch);
    batch->submitting = NULL;
    while (!batch->stopped && !ret->member && !batch->announce) {
        update_open(batch);
        if (fill_closed(batch) || lose_overdue(batch) || serve_next(batch, ret)) {
            unlock(batch);
            lock(batch);
        } else if (!batch->announce) {
            wait_for_change(batch);
        }
    }
    if (!ret->member)
        batch->announce = false;
    const bool moved = pool->regions && pool->regions->next;
    const bool stopped = batch->stopped && !ret->member;
    unlock(batch);
    if (moved)
        pool_close_unused_regions(pool);
    return stopped ? -ESHUTDOWN : 0;
}

static void *collect(void *opaque)
{
    struct batch *batch = opaque;
    struct batch_grant grant;
    pthread_setname_np(pthread_self(), "batch");
    while (batch_take(batch, &grant) == 0) {
        if (grant.member)
            batch->submit(&grant);
        else
            event_post(batch->events, batch->ready);
    }
    lock(batch);
    batch->ended = true;
    unlock(batch);
    return NULL;
}

int batch_start(struct batch *batch, void (*submit)(struct batch_grant *),
                struct event_queue *events, struct event *ready)
{
    if (batch->started || batch->stopped)
        return 0;
    batch->submit = submit;
    batch->events = events;
    batch->ready = ready;
    const int rc = -pthread_create(&batch->thread, NULL, collect, batch);
    batch->started = rc == 0;
    return rc;
}

// The thread may be in a driver, or unmap memory.
bool batch_stop(struct batch *batch, bool waits)
{
    lock(batch);
    batch->stopped = true;
    wake_all(batch);
    const bool over = waits || !batch->started || batch->ended;
    unlock(batch);
    if (over && batch->started) {
        pthread_join(batch->thread, NULL);
        batch->started = false;
    }
    return over;
}

// --- life

// Returns the index of the member of the same name, or the first free one.
static int find_index(const struct batch *batch, const char *camera)
{
    int index = 0;
    for (const struct batch_member *m = batch->members; m; m = m->next)
        if (strcmp(m->camera, camera) == 0)
            return m->index;
    for (const struct batch_member *m = batch->members; m;) {
        const bool taken = m->index == index;
        index += taken;
        m = taken ? batch->members : m->next;
    }
    return index;
}

// If one member loses nothing, the pool evicts nothing.
static void update_policy(struct batch *batch)
{
    struct pool *pool = batch->options.pool;
    enum overflow overflow = pool->options.overflow;
    for (const struct batch_member *m = batch->members; m; m = m->next)
        if (m->overflow == OVERFLOW_WAIT)
            overflow = OVERFLOW_WAIT;
    atomic_store(&pool->overflow, overflow);
}

void batch_add(struct batch *batch, struct batch_member *member)
{
    lock(batch);
    member->batch = batch;
    member->index = find_index(batch, member->camera);
    member->next = batch->members;
    batch->members = member;
    update_policy(batch);
    unlock(batch);
}

void batch_end(struct batch_member *member)
{
    lock(member->batch);
    member->overflow = member->batch->options.pool->options.overflow;
    update_policy(member->batch);
    unlock(member->batch);
}

void batch_join(struct batch_member *member)
{
    struct batch *batch = member->batch;
    lock(batch);
    if (!member->joined)
        close_open(batch, CLOSED_RELOAD);
    member->joined = true;
    unlock(batch);
}

void batch_leave(struct batch_member *member)
{
    struct batch *batch = member->batch;
    lock(batch);
    if (member->joined)
        close_open(batch, CLOSED_RELOAD);
    struct batch_member **link = &batch->members;
    while (*link != member)
        link = &(*link)->next;
    *link = member->next;
    update_policy(batch);
    unlock(batch);
    member->batch = NULL;
}

int batch_open(struct batch **ret, const struct batch_options *options)
{
    struct batch *batch = calloc(1, sizeof *batch);
    if (!batch)
        return -ENOMEM;
    batch->options = *options;
    *ret = batch;
    return 0;
}

void batch_close(struct batch *batch)
{
    if (!batch)
        return;
    if (batch->started)
        batch_stop(batch, true);
    free(batch->blank);
    free(batch);
}
