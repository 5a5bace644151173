// The recent rate of a counter, from samples taken about once a second. For one thread; zeroed, it
// is ready.
#ifndef FRAMED_DAEMON_BASE_RATE_COUNTER_H
#define FRAMED_DAEMON_BASE_RATE_COUNTER_H

#include <stdint.h>

enum { RATE_COUNTER_SAMPLES = 6 };                         // the last five seconds
#define RATE_COUNTER_NS ((RATE_COUNTER_SAMPLES - 1) * 1e9) // the time they span

struct rate_counter {
    uint64_t count[RATE_COUNTER_SAMPLES];
    int64_t ns[RATE_COUNTER_SAMPLES]; // CLOCK_MONOTONIC
    unsigned n;                       // samples taken; the last RATE_COUNTER_SAMPLES are kept
};

void rate_counter_sample(struct rate_counter *, uint64_t count, int64_t now_ns);
double rate_counter_rate(const struct rate_counter *); // per second; 0 with fewer than two samples

#endif
