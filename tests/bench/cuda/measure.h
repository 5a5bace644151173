// Private to the driver of measure.h for CUDA: measure.cu (the device and its clock, copies)
// and measure_ops.cu (kernels).
#ifndef FRAMED_TESTS_BENCH_CUDA_MEASURE_H
#define FRAMED_TESTS_BENCH_CUDA_MEASURE_H

#include "kernels/cuda/cuda.h"
#include "tests/bench/measure.h"

struct measure {
    int device;
    double peak; // bytes/s
    char description[400];
    cudaStream_t up, down;
    cudaEvent_t start, end;
};

// A round of work that is put on the device without waiting for it.
typedef cudaError_t work_fn(struct measure *, void *work);

// By the host's clock, from the first call to the end of all work: as a caller sees it.
cudaError_t measure_by_host(struct measure *, work_fn *, void *work, int rounds, double seconds[]);
// By the device's clock, of work on measure::up, several times in a row: the calls of one are made
// while the one before runs, so they do not count.
cudaError_t measure_by_device(struct measure *, work_fn *, void *work, int rounds,
                              double seconds[]);

// As in struct measure_driver.
int measure_warp(struct measure *, const struct image src[], int n, const struct op *,
                 bool together, int rounds, double seconds[]);
int measure_yuv(struct measure *, const struct image *src, const struct op *, int rounds,
                double seconds[]);
int measure_yuv_plain(struct measure *, const struct image *src, const struct op *, uint8_t *to,
                      int rounds, double seconds[]);

#endif
