// The thread of one batch: submits parked pictures once there is room for them, and closes the
// batch when its wait is over (output/batch.h).
#ifndef FRAMED_DAEMON_TRANSFORM_COLLECTOR_H
#define FRAMED_DAEMON_TRANSFORM_COLLECTOR_H

#include "daemon/output/output.h"

struct collector;

// Starts the thread of a batch's own output, which outlives it. Loop thread. 0 or negative errno.
int collector_open(struct collector **ret, struct output *, struct event_queue *);
// Requests the thread's end, once the batch has no members. True: it has ended, and collector_close
// does not block. Accepts NULL.
bool collector_stop(struct collector *);
// Waits for the thread to end. Accepts NULL.
void collector_close(struct collector *);

#endif
