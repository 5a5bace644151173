// Time of one frame against the number of CUDA streams or CPU threads, drawn as SVG.
#ifndef FRAMED_TESTS_BENCH_CURVE_H
#define FRAMED_TESTS_BENCH_CURVE_H

#include <stdbool.h>
#include <stdio.h>

enum { CURVE_MAX = 12 };

struct curve {
    int n;
    int streams[CURVE_MAX];
    double ms[CURVE_MAX];
    bool threads;                                  // the columns are CPU threads, not CUDA streams
    double plain_ms, auto_ms, steady_ms, limit_ms; // 0: not measured
    char title[128];                               // "8K BGRA to packed YUV ..., NVIDIA H200"
};

int curve_write(FILE *, const struct curve *); // 0 or negative errno

#endif
