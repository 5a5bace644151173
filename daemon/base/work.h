// Runs blocking work (a disk or a server that hangs) on libuv's threads for the loop thread.
#ifndef FRAMED_DAEMON_BASE_WORK_H
#define FRAMED_DAEMON_BASE_WORK_H

#include <uv.h>

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
