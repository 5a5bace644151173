// Traffic between the loop thread and other threads: events to it, and blocking work for it.
#ifndef FRAMED_DAEMON_BASE_LOOP_H
#define FRAMED_DAEMON_BASE_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

// --- events from any thread to the loop thread, in posting order. An event is embedded in the
// object that it concerns and is queued at most once: the queue never allocates and never
// overflows.

struct event_queue;

struct event {
    void (*callback)(struct event *); // loop thread; may post the event again
    _Atomic bool posted;
    // Private to loop.c:
    struct event *next;
    struct event_queue *queue; // the last one it was posted to
};

int event_queue_open(struct event_queue **ret, uv_loop_t *loop);
void event_queue_close(struct event_queue *); // loop thread; cancels all events
// Any thread. Does nothing while the event is queued.
void event_post(struct event_queue *, struct event *);
// Removes the event from the queue if it is there. Loop thread. Call before freeing the event's
// memory, once no other thread posts it any more.
void event_cancel(struct event *);

// --- blocking work (a disk or a server that hangs) on threads of libuv

struct work_queue {
    uv_loop_t *loop;
    int n;                      // unfinished work
    void (*idle)(void *opaque); // loop thread: all work is done
    void *opaque;
};

// Embedded in the object that it concerns, which must live until `done`.
struct work {
    void (*run)(struct work *);  // any thread
    void (*done)(struct work *); // loop thread, after `run`; may start the work again
    uv_work_t request;
    struct work_queue *queue;
};

// Loop thread. The work must not be in progress; `run` and `done` must be set.
void work_start(struct work_queue *, struct work *);

#endif
