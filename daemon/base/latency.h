// Frame latencies, counted in buckets an eighth of an octave wide, from 2 us to 65 s: fine enough
// for quantiles. Any thread observes, any thread reads; a window belongs to one thread.
#ifndef FRAMED_DAEMON_BASE_LATENCY_H
#define FRAMED_DAEMON_BASE_LATENCY_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    LATENCY_PARTS = 8, // buckets per octave
    LATENCY_OCTAVES = 22,
    LATENCY_BUCKETS = LATENCY_PARTS * (1 + LATENCY_OCTAVES), // the last has no upper bound
};

struct latency {
    _Atomic uint64_t bucket[LATENCY_BUCKETS];
    _Atomic uint64_t sum_ns;
};

void latency_observe(struct latency *, int64_t ns);
// Returns the bucket of `ns`, and the exclusive upper bound of a bucket in ns.
int latency_bucket(int64_t ns);
int64_t latency_bound_ns(int bucket);

// Fewer bounds, for metrics: half a millisecond and its doublings, as text in seconds, and the
// buckets that end there.
enum { LATENCY_COARSE = 14 };
extern const char *const latency_coarse_s[LATENCY_COARSE];
int latency_coarse_bucket(int coarse);

// Counts at the last two turns: a window starts at the turn before the last.
struct latency_window {
    uint64_t before[2][LATENCY_BUCKETS];
};
void latency_turn(struct latency_window *, const struct latency *);
// Returns the latency in ns that the share `q` of the window's frames stayed within; -1: no frames.
int64_t latency_quantile_ns(const struct latency_window *, const struct latency *, double q);

#endif
