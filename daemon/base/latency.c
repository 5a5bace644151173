#include "daemon/base/latency.h"

#include <string.h>

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
