// When to try again: 1 1 2 5 10 30 30 ... seconds, a fifth more or less, so that cameras that went
// together do not come back in the same instant. Pure but for its own state.
#ifndef FRAMED_DAEMON_INPUT_RETRY_H
#define FRAMED_DAEMON_INPUT_RETRY_H

#include <stdbool.h>
#include <stdint.h>

struct retry {
    int failures;  // in a row
    int refusals;  // of the password, in a row
    uint32_t seed; // of the jitter: differs between cameras
};

void retry_reset(struct retry *);                    // a good picture came
int64_t retry_next_ns(struct retry *, bool refused); // after a failure: how long to wait

#endif
