#include "daemon/base/counters.h"

#include <string.h>

// --- frames

static const char *const loss_names[LOSSES] = {
    [LOSS_THINNED] = "thinned",   [LOSS_STILL] = "still",
    [LOSS_LATE] = "late",         [LOSS_DAMAGED] = "damaged",
    [LOSS_OVERFLOW] = "overflow", [LOSS_CLIENT] = "client",
    [LOSS_SINK] = "sink",         [LOSS_CONFIG] = "config",
    [LOSS_BACKEND] = "backend",   [LOSS_BACKEND_BUSY] = "backend_busy",
    [LOSS_STOPPING] = "stopping",
};

const char *loss_name(enum loss loss)
{
    return loss_names[loss];
}

static void add_frame(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void ledger_offer(struct ledger *ledger)
{
    add_frame(&ledger->offered);
}

void ledger_emit(struct ledger *ledger)
{
    add_frame(&ledger->emitted);
}

void ledger_lose(struct ledger *ledger, enum loss loss)
{
    add_frame(&ledger->lost[loss]);
}

uint64_t ledger_lost(const struct ledger *ledger)
{
    uint64_t sum = 0;
    for (int i = 0; i < LOSSES; i++)
        sum += atomic_load(&ledger->lost[i]);
    return sum;
}

int64_t ledger_in_flight(const struct ledger *ledger)
{
    // Read the ended frames first: a frame that ends between the two reads must not make this
    // negative.
    const uint64_t ended = ledger_lost(ledger) + atomic_load(&ledger->emitted);
    return (int64_t)(atomic_load(&ledger->offered) - ended);
}

// --- latencies

// Buckets are linear up to PARTS units, then PARTS to each octave. A unit is 1/512 ms.
enum { UNITS = 8, UNITS_NS = 15625 }; // UNITS units are UNITS_NS ns

int latency_bucket(int64_t ns)
{
    uint64_t units =
        ns > 0 ? (uint64_t)ns / UNITS_NS * UNITS + (uint64_t)ns % UNITS_NS * UNITS / UNITS_NS : 0;
    if (units < LATENCY_PARTS)
        return (int)units;
    int octave = 63 - __builtin_clzll(units) - 3; // 2^3 is PARTS
    if (octave >= LATENCY_OCTAVES)
        return LATENCY_BUCKETS - 1;
    return LATENCY_PARTS * (1 + octave) + (int)(units >> octave) % LATENCY_PARTS;
}

int64_t latency_bound_ns(int bucket)
{
    int octave = bucket / LATENCY_PARTS - 1;
    int64_t units = bucket + 1;
    if (octave >= 0)
        units = (int64_t)(LATENCY_PARTS + bucket % LATENCY_PARTS + 1) << octave;
    return units * UNITS_NS / UNITS;
}

const char *const latency_coarse_s[LATENCY_COARSE] = {
    "0.0005", "0.001", "0.002", "0.004", "0.008", "0.016", "0.032",
    "0.064",  "0.128", "0.256", "0.512", "1.024", "2.048", "4.096",
};

int latency_coarse_bucket(int coarse)
{
    return LATENCY_PARTS * (6 + coarse) - 1; // six times PARTS buckets lie below 0.5 ms
}

void latency_observe(struct latency *latency, int64_t ns)
{
    atomic_fetch_add_explicit(&latency->bucket[latency_bucket(ns)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&latency->sum_ns, (uint64_t)(ns > 0 ? ns : 0), memory_order_relaxed);
}

void latency_turn(struct latency_window *window, const struct latency *latency)
{
    memcpy(window->before[0], window->before[1], sizeof window->before[0]);
    for (int i = 0; i < LATENCY_BUCKETS; i++)
        window->before[1][i] = atomic_load_explicit(&latency->bucket[i], memory_order_relaxed);
}

int64_t latency_quantile_ns(const struct latency_window *window, const struct latency *latency,
                            double q)
{
    uint64_t count[LATENCY_BUCKETS], total = 0;
    for (int i = 0; i < LATENCY_BUCKETS; i++) {
        count[i] =
            atomic_load_explicit(&latency->bucket[i], memory_order_relaxed) - window->before[0][i];
        total += count[i];
    }
    double wanted = q * (double)total;
    for (int i = 0; total > 0 && i < LATENCY_BUCKETS; i++) {
        if ((double)count[i] < wanted || count[i] == 0) {
            wanted -= (double)count[i];
            continue;
        }
        int64_t low = i > 0 ? latency_bound_ns(i - 1) : 0;
        return low + (int64_t)((double)(latency_bound_ns(i) - low) * wanted / (double)count[i]);
    }
    return -1;
}

// --- durations

#define MS INT64_C(1000000)

const int64_t histogram_bounds_ns[HISTOGRAM_BUCKETS] = {
    MS / 2,  1 * MS,   2 * MS,   5 * MS,   10 * MS,   20 * MS,
    50 * MS, 100 * MS, 200 * MS, 500 * MS, 1000 * MS, 5000 * MS,
};

void histogram_observe(struct histogram *histogram, int64_t ns)
{
    int i = 0;
    while (i < HISTOGRAM_BUCKETS && ns > histogram_bounds_ns[i])
        i++;
    atomic_fetch_add_explicit(&histogram->bucket[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_ns, (uint64_t)(ns > 0 ? ns : 0),
                              memory_order_relaxed);
}

// --- rates

void rate_counter_sample(struct rate_counter *meter, uint64_t count, int64_t now_ns)
{
    unsigned i = meter->n++ % RATE_COUNTER_SAMPLES;
    meter->count[i] = count;
    meter->ns[i] = now_ns;
}

double rate_counter_rate(const struct rate_counter *meter)
{
    if (meter->n < 2)
        return 0;
    unsigned last = (meter->n - 1) % RATE_COUNTER_SAMPLES;
    unsigned first = meter->n > RATE_COUNTER_SAMPLES ? meter->n % RATE_COUNTER_SAMPLES : 0;
    int64_t ns = meter->ns[last] - meter->ns[first];
    if (meter->count[last] < meter->count[first])
        return 0; // the counter restarted
    return ns > 0 ? (double)(meter->count[last] - meter->count[first]) * 1e9 / (double)ns : 0;
}
