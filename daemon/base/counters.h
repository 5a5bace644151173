// The counters of the status and the metrics: the frames of an output, their latencies, durations
// and rates. Any thread adds, any thread reads; a window of latencies and a rate belong to one
// thread.
#ifndef FRAMED_DAEMON_BASE_COUNTERS_H
#define FRAMED_DAEMON_BASE_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

// --- the ledger of an output's frames: offered = emitted + all losses + in flight

enum loss {
    LOSS_THINNED,      // above the rate that `fps` allows
    LOSS_STILL,        // shows nothing new, by the output's `gate`
    LOSS_LATE,         // older than max_age before a client took it
    LOSS_DAMAGED,      // undecodable, or a damaged picture under `damaged: drop` or `hold`
    LOSS_OVERFLOW,     // clients hold all slots, or a newer frame replaced it
    LOSS_CLIENT,       // no client connected, or all that took it left before its end
    LOSS_SINK,         // writing to the file or server failed
    LOSS_CONFIG,       // the output does not fit this source (a crop outside the picture)
    LOSS_BACKEND,      // the device failed
    LOSS_BACKEND_BUSY, // the backend was still busy with earlier frames of the camera
    LOSS_STOPPING,     // the daemon or the output stopped before delivery
    LOSSES
};

struct ledger {
    _Atomic uint64_t offered, emitted, lost[LOSSES];
};

const char *loss_name(enum loss);
void ledger_offer(struct ledger *);
void ledger_emit(struct ledger *);
void ledger_lose(struct ledger *, enum loss);
uint64_t ledger_lost(const struct ledger *); // the sum over all reasons
// Frames offered and neither emitted nor lost yet. Negative: a bug counted frames twice.
int64_t ledger_in_flight(const struct ledger *);

// --- latencies of frames, in buckets an eighth of an octave wide, from 2 us to 65 s: fine enough
// for quantiles

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

// --- lines, each counted once per reader: when it is offered, and later as delivered or lost

struct line_account {
    uint64_t offered, delivered, lost;
};

// --- durations in the fixed buckets of a Prometheus histogram

enum { HISTOGRAM_BUCKETS = 12 };

extern const int64_t histogram_bounds_ns[HISTOGRAM_BUCKETS]; // upper bounds, ascending

struct histogram {
    _Atomic uint64_t bucket[HISTOGRAM_BUCKETS + 1]; // not cumulative; the last has no bound
    _Atomic uint64_t sum_ns;
};

void histogram_observe(struct histogram *, int64_t ns);

// --- the recent rate of a counter, from samples taken about once a second; zeroed, it is ready

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
