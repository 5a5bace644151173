// What a counter gained a second of late: samples of it, taken about once a second. One thread uses
// a meter; zeroed it is ready.
#ifndef FRAMED_DAEMON_BASE_RATE_COUNTER_H
#define FRAMED_DAEMON_BASE_RATE_COUNTER_H

#include <stdint.h>

enum { RATE_COUNTER_SAMPLES = 6 };                         // the last five seconds
#define RATE_COUNTER_NS ((RATE_COUNTER_SAMPLES - 1) * 1e9) // that they span

struct rate_counter {
    uint64_t count[RATE_COUNTER_SAMPLES];
    int64_t ns[RATE_COUNTER_SAMPLES]; // CLOCK_MONOTONIC
    unsigned n;                       // taken; the last RATE_COUNTER_SAMPLES are kept
};

void rate_counter_sample(struct rate_counter *, uint64_t count, int64_t now_ns);
double rate_counter_rate(const struct rate_counter *); // a second; 0 with less than two samples

#endif
