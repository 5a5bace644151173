// Repeated measurements. Pure.
#ifndef FRAMED_TESTS_BENCH_SAMPLE_H
#define FRAMED_TESTS_BENCH_SAMPLE_H

#include <stddef.h>

// All sort the samples. 0 of none; percent 0 is the least.
double sample_median(double *samples, size_t n);
double sample_percentile(double *samples, size_t n, double percent);

#endif
