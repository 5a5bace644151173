// The thread of one batch: submits pictures that waited for room in it, and closes it when its wait
// is over (output/batch.h).
#ifndef FRAMED_DAEMON_TRANSFORM_COLLECTOR_H
#define FRAMED_DAEMON_TRANSFORM_COLLECTOR_H

#include "daemon/output/output.h"

struct collector;

// Of a batch's own output, which outlives it. Loop thread. 0 or negative errno.
int collector_open(struct collector **ret, struct output *, struct event_queue *);
// Tells the thread to end, once the batch has no members. True: it has ended, so that
// collector_close waits for nothing. Accepts NULL.
bool collector_stop(struct collector *);
// Waits for the end of the thread. Accepts NULL.
void collector_close(struct collector *);

#endif
