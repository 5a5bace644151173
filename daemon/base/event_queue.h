// Events from any thread to the loop thread, in posting order. An event is embedded in the object
// that it concerns and is queued at most once: the queue never allocates and never overflows.
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
    struct event_queue *queue; // the last one it was posted to
};

int event_queue_open(struct event_queue **ret, uv_loop_t *loop);
void event_queue_close(struct event_queue *); // loop thread; cancels all events
// Any thread. Does nothing while the event is queued.
void event_post(struct event_queue *, struct event *);
// Removes the event from the queue if it is there. Loop thread. Call before freeing the event's
// memory, once no other thread posts it any more.
void event_cancel(struct event *);

#endif
