#include "tests/bench/sample.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double sample_median(double *samples, size_t n)
{
    if (n == 0)
        return 0;
    qsort(samples, n, sizeof *samples, compare);
    return (samples[(n - 1) / 2] + samples[n / 2]) / 2;
}

double sample_percentile(double *samples, size_t n, double percent)
{
    if (n == 0)
        return 0;
    qsort(samples, n, sizeof *samples, compare);
    const size_t rank = (size_t)ceil(percent / 100 * (double)n);
    return samples[rank > 0 ? rank - 1 : 0];
}
