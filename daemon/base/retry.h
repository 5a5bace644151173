// Computes when to try again: after 1 1, seven times 1.5, 5 10 20 30 45 45 ... seconds, a fifth
// more or less, so that cameras that failed together do not return in the same instant. A camera
// that returns within 12 s, or hangs up at most nine times, is found again within 2 s. There are 24
// tries in the first 10 minutes, and 80 an hour later. Pure but for its own state.
#ifndef FRAMED_DAEMON_BASE_RETRY_H
#define FRAMED_DAEMON_BASE_RETRY_H

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
