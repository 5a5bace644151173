// Repeated times of one job.
#ifndef FRAMED_TESTS_BENCH_PEERS_TIMES_H
#define FRAMED_TESTS_BENCH_PEERS_TIMES_H

#include <stdlib.h>
#include <time.h>

enum { TIMES_MAX = 192 };

struct times {
    double ms[TIMES_MAX];
    int n;
    double median, min; // set by times_sum_up
};

static inline double clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static inline int times_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Sorts the times. n is at least 1.
static inline void times_sum_up(struct times *times)
{
    qsort(times->ms, (size_t)times->n, sizeof times->ms[0], times_compare);
    times->min = times->ms[0];
    times->median = times->ms[times->n / 2];
}

#endif
