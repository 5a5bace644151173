// The one place where facts cross to the loop thread. A letter is embedded in what it speaks of and
// is in the box at most once, so the box never allocates and never overflows.
#ifndef FRAMED_DAEMON_BASE_EVENT_QUEUE_H
#define FRAMED_DAEMON_BASE_EVENT_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

struct event {
    void (*read)(struct event *); // loop thread; the letter may be posted again from here on
    _Atomic bool posted;
    struct event *next;
};

struct event_queue;

int event_queue_open(struct event_queue **ret, uv_loop_t *loop);
void event_queue_close(struct event_queue *); // loop thread; no letter may be posted any more
// Any thread; does nothing while the letter is in the box.
void event_post(struct event_queue *, struct event *);

#endif
