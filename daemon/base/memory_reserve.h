// What this box has left of its memory beside the plan of all cameras (`framed check`). A camera
// whose pictures are larger than planned takes the difference from here. Any thread.
#ifndef FRAMED_DAEMON_BASE_MEMORY_RESERVE_H
#define FRAMED_DAEMON_BASE_MEMORY_RESERVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct memory_reserve {
    pthread_mutex_t lock;
    size_t limit, planned; // bytes
    size_t taken;          // beyond the plan, by all cameras
};

void memory_reserve_begin(struct memory_reserve *); // without a limit
void memory_reserve_end(struct memory_reserve *);
// What all cameras may use, and what their configuration plans.
void memory_reserve_plan(struct memory_reserve *, size_t limit, size_t planned);
// Takes bytes beyond the plan, or none of them. *left: how many there are, without these.
bool memory_reserve_take(struct memory_reserve *, size_t bytes, size_t *left);
void memory_reserve_give(struct memory_reserve *, size_t bytes);

#endif
