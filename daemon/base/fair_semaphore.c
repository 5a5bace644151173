#include "daemon/base/fair_semaphore.h"

#include <stddef.h>

#include "daemon/base/clock.h"

void fair_semaphore_init(struct fair_semaphore *semaphore, int threads)
{
    *semaphore =
        (struct fair_semaphore){.room = threads, .places = threads, .since_ns = monotonic_ns()};
    semaphore->last = &semaphore->first;
    pthread_mutex_init(&semaphore->mutex, NULL);
}

void fair_semaphore_finish(struct fair_semaphore *semaphore)
{
    pthread_mutex_destroy(&semaphore->mutex);
}

// Adds the time so far. Under lock, before each change of `room`.
static void count(struct fair_semaphore *semaphore)
{
    int64_t now = monotonic_ns();
    int taken = semaphore->places - (semaphore->room > 0 ? semaphore->room : 0);
    semaphore->used_ns += (uint64_t)taken * (uint64_t)(now - semaphore->since_ns);
    semaphore->since_ns = now;
}

// Each waiter has its own condition, so a leaving thread wakes exactly one.
static void join(struct fair_semaphore *semaphore, struct fair_semaphore_waiter *waiter)
{
    *waiter = (struct fair_semaphore_waiter){.in = semaphore->room > 0};
    pthread_cond_init(&waiter->turn, NULL);
    if (waiter->in) {
        count(semaphore);
        semaphore->room--;
        return;
    }
    *semaphore->last = waiter;
    semaphore->last = &waiter->next;
}

void fair_semaphore_enter(struct fair_semaphore *semaphore)
{
    struct fair_semaphore_waiter waiter;
    pthread_mutex_lock(&semaphore->mutex);
    join(semaphore, &waiter);
    while (!waiter.in)
        pthread_cond_wait(&waiter.turn, &semaphore->mutex);
    pthread_mutex_unlock(&semaphore->mutex);
    pthread_cond_destroy(&waiter.turn);
}

// Places go straight to the first in line, so that no later arrival can take them.
static void give_places(struct fair_semaphore *semaphore)
{
    struct fair_semaphore_waiter *first;
    while (semaphore->room > 0 && (first = semaphore->first)) {
        if (!(semaphore->first = first->next))
            semaphore->last = &semaphore->first;
        semaphore->room--;
        first->in = true;
        pthread_cond_signal(&first->turn);
    }
}

void fair_semaphore_reserve(struct fair_semaphore *semaphore, int places)
{
    pthread_mutex_lock(&semaphore->mutex);
    count(semaphore);
    semaphore->room -= places;
    pthread_mutex_unlock(&semaphore->mutex);
}

static void put_back(struct fair_semaphore *semaphore, int places)
{
    count(semaphore);
    semaphore->room += places;
    give_places(semaphore);
}

void fair_semaphore_unreserve(struct fair_semaphore *semaphore, int places)
{
    pthread_mutex_lock(&semaphore->mutex);
    put_back(semaphore, places);
    pthread_mutex_unlock(&semaphore->mutex);
}

void fair_semaphore_leave(struct fair_semaphore *semaphore)
{
    fair_semaphore_unreserve(semaphore, 1);
}

void fair_semaphore_join(struct fair_semaphore *semaphore, struct fair_semaphore_waiter *waiter)
{
    pthread_mutex_lock(&semaphore->mutex);
    join(semaphore, waiter);
    pthread_mutex_unlock(&semaphore->mutex);
}

bool fair_semaphore_is_in(struct fair_semaphore *semaphore,
                          const struct fair_semaphore_waiter *waiter)
{
    pthread_mutex_lock(&semaphore->mutex);
    const bool in = waiter->in;
    pthread_mutex_unlock(&semaphore->mutex);
    return in;
}

static void leave_line(struct fair_semaphore *semaphore, struct fair_semaphore_waiter *waiter)
{
    struct fair_semaphore_waiter **at = &semaphore->first;
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
    if (semaphore->last == &waiter->next)
        semaphore->last = at;
}

void fair_semaphore_withdraw(struct fair_semaphore *semaphore, struct fair_semaphore_waiter *waiter)
{
    pthread_mutex_lock(&semaphore->mutex);
    if (waiter->in)
        put_back(semaphore, 1);
    else
        leave_line(semaphore, waiter);
    pthread_mutex_unlock(&semaphore->mutex);
    pthread_cond_destroy(&waiter->turn);
}

uint64_t fair_semaphore_used_ns(struct fair_semaphore *semaphore)
{
    pthread_mutex_lock(&semaphore->mutex);
    count(semaphore);
    uint64_t used = semaphore->used_ns;
    pthread_mutex_unlock(&semaphore->mutex);
    return used;
}
