// Admits a limited number of threads at a time, in order of arrival. Thread-safe.
#ifndef FRAMED_DAEMON_BASE_FAIR_SEMAPHORE_H
#define FRAMED_DAEMON_BASE_FAIR_SEMAPHORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct fair_semaphore_waiter { // private
    pthread_cond_t turn;
    bool in;
    struct fair_semaphore_waiter *next;
};

struct fair_semaphore {
    pthread_mutex_t mutex;
    int room; // places left: above 0 only while nobody waits, below 0 after fair_semaphore_reserve
              // took more than were free
    struct fair_semaphore_waiter *first, **last;
    int places;       // total
    uint64_t used_ns; // time that places were taken, summed over them up to since_ns
    int64_t since_ns; // CLOCK_MONOTONIC
};

void fair_semaphore_init(struct fair_semaphore *, int threads);
void fair_semaphore_finish(struct fair_semaphore *); // with nobody inside
void fair_semaphore_enter(struct fair_semaphore *);
void fair_semaphore_leave(struct fair_semaphore *); // any thread, on behalf of one that is inside
// The same for a thread with other work to do while it waits: join the line, poll is_in, and
// withdraw to leave, also while still in line. The waiter must not move in between.
void fair_semaphore_join(struct fair_semaphore *, struct fair_semaphore_waiter *);
bool fair_semaphore_is_in(struct fair_semaphore *, const struct fair_semaphore_waiter *);
void fair_semaphore_withdraw(struct fair_semaphore *, struct fair_semaphore_waiter *);
// Takes `places` at once without waiting. Until they are returned, the limit for other threads is
// that much lower.
void fair_semaphore_reserve(struct fair_semaphore *, int places);
void fair_semaphore_unreserve(struct fair_semaphore *, int places);
// Time since init that places were taken, summed over all places.
uint64_t fair_semaphore_used_ns(struct fair_semaphore *);

#endif
