#include "daemon/base/fair_semaphore.h"

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/clock.h"

// Each waits for a signal of its own: whoever leaves wakes one thread and no more.
struct fair_semaphore_waiter {
    pthread_cond_t turn;
    bool in;
    struct fair_semaphore_waiter *next;
};

void fair_semaphore_init(struct fair_semaphore *gate, int threads)
{
    *gate = (struct fair_semaphore){.room = threads, .places = threads, .since_ns = monotonic_ns()};
    gate->last = &gate->first;
    pthread_mutex_init(&gate->mutex, NULL);
}

void fair_semaphore_finish(struct fair_semaphore *gate)
{
    pthread_mutex_destroy(&gate->mutex);
}

// Under lock, before each change of the room.
static void count(struct fair_semaphore *gate)
{
    int64_t now = monotonic_ns();
    int taken = gate->places - (gate->room > 0 ? gate->room : 0);
    gate->used_ns += (uint64_t)taken * (uint64_t)(now - gate->since_ns);
    gate->since_ns = now;
}

static void wait_in_line(struct fair_semaphore *gate)
{
    struct fair_semaphore_waiter waiter = {.in = false};
    pthread_cond_init(&waiter.turn, NULL);
    *gate->last = &waiter;
    gate->last = &waiter.next;
    while (!waiter.in)
        pthread_cond_wait(&waiter.turn, &gate->mutex);
    pthread_cond_destroy(&waiter.turn);
}

void fair_semaphore_enter(struct fair_semaphore *gate)
{
    pthread_mutex_lock(&gate->mutex);
    count(gate);
    if (gate->room > 0)
        gate->room--;
    else
        wait_in_line(gate);
    pthread_mutex_unlock(&gate->mutex);
}

// Places pass to the first in line at once, so that none who comes later can take them.
static void let_in(struct fair_semaphore *gate)
{
    struct fair_semaphore_waiter *first;
    while (gate->room > 0 && (first = gate->first)) {
        if (!(gate->first = first->next))
            gate->last = &gate->first;
        gate->room--;
        first->in = true;
        pthread_cond_signal(&first->turn);
    }
}

void fair_semaphore_press(struct fair_semaphore *gate, int places)
{
    pthread_mutex_lock(&gate->mutex);
    count(gate);
    gate->room -= places;
    pthread_mutex_unlock(&gate->mutex);
}

void fair_semaphore_retreat(struct fair_semaphore *gate, int places)
{
    pthread_mutex_lock(&gate->mutex);
    count(gate);
    gate->room += places;
    let_in(gate);
    pthread_mutex_unlock(&gate->mutex);
}

void fair_semaphore_leave(struct fair_semaphore *gate)
{
    fair_semaphore_retreat(gate, 1);
}

uint64_t fair_semaphore_used_ns(struct fair_semaphore *gate)
{
    pthread_mutex_lock(&gate->mutex);
    count(gate);
    uint64_t used = gate->used_ns;
    pthread_mutex_unlock(&gate->mutex);
    return used;
}
