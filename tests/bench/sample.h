// Repeated measurements. Pure.
#ifndef FRAMED_TESTS_BENCH_SAMPLE_H
#define FRAMED_TESTS_BENCH_SAMPLE_H

#include <stddef.h>

// Both sort the samples and return 0 for n = 0; percent 0 is the minimum.
double sample_median(double *samples, size_t n);
double sample_percentile(double *samples, size_t n, double percent);

#endif
