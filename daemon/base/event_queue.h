// Events from any thread to the loop thread, in the order in which they were posted. An event is a
// member of what it is about, and is in the queue at most once: the queue never allocates and never
// overflows.
#ifndef FRAMED_DAEMON_BASE_EVENT_QUEUE_H
#define FRAMED_DAEMON_BASE_EVENT_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

struct event_queue;

struct event {
    void (*callback)(struct event *); // loop thread; may post the event again
    _Atomic bool posted;
    // Private to event_queue.c:
    struct event *next;
    struct event_queue *queue; // of the last event_post
};

int event_queue_open(struct event_queue **ret, uv_loop_t *loop);
void event_queue_close(struct event_queue *); // loop thread; cancels all events
// Any thread; does nothing while the event is in the queue.
void event_post(struct event_queue *, struct event *);
// Takes the event out of the queue if it is there. Loop thread, before the event's memory is freed
// and once no other thread posts the event any more.
void event_cancel(struct event *);

#endif
