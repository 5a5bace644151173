// What a counter gained a second of late: samples of it, taken about once a second. One thread uses
// a meter; zeroed it is ready.
#ifndef FRAMED_DAEMON_SERVICE_METER_H
#define FRAMED_DAEMON_SERVICE_METER_H

#include <stdint.h>

enum { METER_SAMPLES = 6 };                  // the last five seconds
#define METER_NS ((METER_SAMPLES - 1) * 1e9) // that they span

struct meter {
    uint64_t count[METER_SAMPLES];
    int64_t ns[METER_SAMPLES]; // CLOCK_MONOTONIC
    unsigned n;                // taken; the last METER_SAMPLES are kept
};

void meter_sample(struct meter *, uint64_t count, int64_t now_ns);
double meter_rate(const struct meter *); // a second; 0 with less than two samples

#endif
