// Times the link between host and device with copies of a job's size: the job's limit.
#ifndef FRAMED_TESTS_BENCH_LINK_H
#define FRAMED_TESTS_BENCH_LINK_H

#include "tests/bench/bench.h"

struct link_times { // seconds, median
    double up, down, both;
};

// Measures `n` copies in each direction, in pinned memory.
int link_measure(struct bench *, const uint8_t *from, size_t up_bytes, uint8_t *to,
                 size_t down_bytes, int n, struct link_times *ret);
double link_slowest(const struct link_times *); // the lower bound for any overlap

#endif
