// Durations in fixed buckets, as Prometheus counts them. Any thread observes, any thread reads.
#ifndef FRAMED_DAEMON_BASE_HISTOGRAM_H
#define FRAMED_DAEMON_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 12 };

extern const int64_t histogram_bounds_ns[HISTOGRAM_BUCKETS]; // upper bounds, ascending

struct histogram {
    _Atomic uint64_t bucket[HISTOGRAM_BUCKETS + 1]; // not cumulative; the last has no bound
    _Atomic uint64_t sum_ns;
};

void histogram_observe(struct histogram *, int64_t ns);

#endif
