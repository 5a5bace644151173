// The same statistics with OpenCV's calls.
#ifndef FRAMED_TESTS_BENCH_STATISTICS_PEER_H
#define FRAMED_TESTS_BENCH_STATISTICS_PEER_H

#include <stdbool.h>

#include "kernels/statistics.h"

#ifdef __cplusplus
extern "C" {
#endif

struct opencv_statistics {
    double mean, deviation, min, max, laplacian; // laplacian: the mean of its absolute values
    float histogram[STATISTICS_BINS];
    uint8_t grid[STATISTICS_COLUMNS * STATISTICS_ROWS];
};

// Computes them for a tight luma on one thread; sets laplacian and histogram only if `all`.
void opencv_statistics(const uint8_t *luma, int width, int height, bool all,
                       struct opencv_statistics *ret);

#ifdef __cplusplus
}
#endif
#endif
