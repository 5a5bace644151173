// When to try again: 1 1, seven times 1.5, 5 10 20 30 45 45 ... seconds, a fifth more or less, so
// that cameras that went together do not come back in the same instant. What returns after 12 s at
// most, or hangs up up to nine times, is found again within 2 s. In the first 10 minutes these are
// 24 tries; later ones are 80 an hour. Pure but for its own state.
#ifndef FRAMED_DAEMON_INPUT_RETRY_H
#define FRAMED_DAEMON_INPUT_RETRY_H

#include <stdbool.h>
#include <stdint.h>

struct retry {
    int failures;  // in a row
    int refusals;  // of the password or of the stream, in a row
    uint32_t seed; // of the jitter: differs between cameras
};

void retry_reset(struct retry *);                    // a good picture came
int64_t retry_next_ns(struct retry *, bool refused); // after a failure: how long to wait

#endif
