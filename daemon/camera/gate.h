// Lets a number of threads in at a time, first come first served. Thread-safe.
#ifndef FRAMED_DAEMON_CAMERA_GATE_H
#define FRAMED_DAEMON_CAMERA_GATE_H

#include <pthread.h>
#include <stdint.h>

struct gate_waiter; // on its thread's stack

struct gate {
    pthread_mutex_t mutex;
    int room; // threads that may still go in: above 0 only while nobody waits, below 0 where some
              // pressed in
    struct gate_waiter *first, **last;
    int places;       // in all
    uint64_t used_ns; // of them, up to since_ns
    int64_t since_ns; // CLOCK_MONOTONIC
};

void gate_init(struct gate *, int threads);
void gate_finish(struct gate *); // with nobody inside
void gate_enter(struct gate *);
void gate_leave(struct gate *); // any thread, for one that is inside
// Takes `places` at once, waiting for none: others get in as long as that many fewer are inside.
void gate_press(struct gate *, int places);
void gate_retreat(struct gate *, int places); // gives them back
// How long its places were taken since it began, added up.
uint64_t gate_used_ns(struct gate *);

#endif
