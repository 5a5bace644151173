// Lets a number of threads in at a time, first come first served. Thread-safe.
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
    int room; // threads that may still enter: above 0 only while nobody waits, below 0 after
              // fair_semaphore_reserve with more than there was
    struct fair_semaphore_waiter *first, **last;
    int places;       // in all
    uint64_t used_ns; // of them, up to since_ns
    int64_t since_ns; // CLOCK_MONOTONIC
};

void fair_semaphore_init(struct fair_semaphore *, int threads);
void fair_semaphore_finish(struct fair_semaphore *); // with nobody inside
void fair_semaphore_enter(struct fair_semaphore *);
void fair_semaphore_leave(struct fair_semaphore *); // any thread, for one that is inside
// The same for a thread that has other work to do meanwhile: it joins the line, looks whether it is
// in, and withdraws to leave, also out of the line. The waiter does not move between.
void fair_semaphore_join(struct fair_semaphore *, struct fair_semaphore_waiter *);
bool fair_semaphore_is_in(struct fair_semaphore *, const struct fair_semaphore_waiter *);
void fair_semaphore_withdraw(struct fair_semaphore *, struct fair_semaphore_waiter *);
// Takes `places` at once without waiting: until they are given back, others enter only while that
// many fewer are inside.
void fair_semaphore_reserve(struct fair_semaphore *, int places);
void fair_semaphore_unreserve(struct fair_semaphore *, int places); // gives them back
// How long its places were taken since it began, added up.
uint64_t fair_semaphore_used_ns(struct fair_semaphore *);

#endif
