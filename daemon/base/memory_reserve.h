// Memory of this machine that the plan for all cameras (`framed check`) leaves free. A camera whose
// pictures are larger than planned takes the difference from here. Any thread.
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
// Sets the limit for all cameras and the total that their configuration plans.
void memory_reserve_plan(struct memory_reserve *, size_t limit, size_t planned);
// Takes all `bytes` beyond the plan, or none. *left: the bytes available before this call.
bool memory_reserve_take(struct memory_reserve *, size_t bytes, size_t *left);
void memory_reserve_give(struct memory_reserve *, size_t bytes);

#endif
