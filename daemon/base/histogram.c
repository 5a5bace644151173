#include "daemon/base/histogram.h"

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
