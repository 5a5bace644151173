// By when a camera's thread means to be through with what it is at. Its own deadlines end each step
// that may block: a thread that is at one for much longer will not come back. Nor will a backend
// that keeps the camera's jobs, for which nobody outside framed is waited. One thread writes it but
// for the jobs, any reads. Zeroed, nobody waits for the thread.
#ifndef FRAMED_DAEMON_BASE_WATCHDOG_H
#define FRAMED_DAEMON_BASE_WATCHDOG_H

#include <stdatomic.h>
#include <stdint.h>

enum step {
    STEP_CONNECTING,
    STEP_READING,
    STEP_DECODING,
    STEP_SUBMITTING,
    STEP_MOVING, // to another device, or away from it
    STEP_CLOSING,
    STEP_PAUSING,
};

struct watchdog {
    _Atomic int64_t due_ns; // CLOCK_MONOTONIC; 0: it waits for others, or has ended
    _Atomic int step;       // enum step
    _Atomic int jobs;       // that the backend has
    _Atomic int64_t job_ns; // CLOCK_MONOTONIC, where it has some: it got the first, or was last
                            // through with one
};

// A step begins that takes `ns` at most, beside what it computes.
void watchdog_begin(struct watchdog *, enum step, int64_t ns);
// The thread ends, or waits for as long as somebody else likes.
void watchdog_rest(struct watchdog *);
// The backend gets a job, from the thread; it was through with one at `now_ns` (CLOCK_MONOTONIC),
// on any thread.
void watchdog_job_begins(struct watchdog *);
void watchdog_job_ends(struct watchdog *, int64_t now_ns);
// What the thread is at ("reading") for more than `patience_ns` longer than it meant to; NULL: all
// is well.
const char *watchdog_stuck(const struct watchdog *, int64_t patience_ns);

#endif
