// Work that may block (a disk or a server that hangs), on libuv's threads, for the loop thread.
#ifndef FRAMED_DAEMON_BASE_WORK_H
#define FRAMED_DAEMON_BASE_WORK_H

#include <uv.h>

struct work_queue {
    uv_loop_t *loop;
    int n;                      // of work that is not done
    void (*idle)(void *opaque); // loop thread: none is left
    void *opaque;
};

// A member of what it is about, which stays until `done`.
struct work {
    void (*run)(struct work *);  // any thread
    void (*done)(struct work *); // loop thread, after it; the work may be started again
    uv_work_t request;
    struct work_queue *queue;
};

// Loop thread. The work is not under way; `run` and `done` are set.
void work_start(struct work_queue *, struct work *);

#endif
