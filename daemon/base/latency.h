// How long frames took: counts in buckets an eighth of an octave wide, from 2 us to 65 s, fine
// enough to tell quantiles. Any thread observes, any thread reads; windows are one thread's own.
#ifndef FRAMED_DAEMON_BASE_LATENCY_H
#define FRAMED_DAEMON_BASE_LATENCY_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    LATENCY_PARTS = 8, // buckets of an octave
    LATENCY_OCTAVES = 22,
    LATENCY_BUCKETS = LATENCY_PARTS * (1 + LATENCY_OCTAVES), // the last has no upper bound
};

struct latency {
    _Atomic uint64_t bucket[LATENCY_BUCKETS];
    _Atomic uint64_t sum_ns;
};

void latency_observe(struct latency *, int64_t ns);
// The bucket that `ns` belongs to, and the ns that a bucket ends below.
int latency_bucket(int64_t ns);
int64_t latency_bound_ns(int bucket);

// Fewer bounds, for metrics: half a millisecond and its doubles, as text in seconds, and the
// buckets that end there.
enum { LATENCY_COARSE = 14 };
extern const char *const latency_coarse_s[LATENCY_COARSE];
int latency_coarse_bucket(int coarse);

// What was counted of late: since the turn before the last.
struct latency_window {
    uint64_t before[2][LATENCY_BUCKETS];
};
void latency_turn(struct latency_window *, const struct latency *);
// The latency that the share `q` of the window's frames stayed within, ns; -1: there are none.
int64_t latency_quantile_ns(const struct latency_window *, const struct latency *, double q);

#endif
