// Private to the CUDA driver of measure.h: measure.cu (the device, its clock, copies) and
// measure_ops.cu (kernels).
#ifndef FRAMED_TESTS_BENCH_CUDA_MEASURE_H
#define FRAMED_TESTS_BENCH_CUDA_MEASURE_H

#include "kernels/cuda/cuda.h"
#include "kernels/image.h"
#include "tests/bench/measure.h"

struct measure {
    int device;
    double peak; // bytes/s
    char description[400];
    cudaStream_t up, down;
    cudaEvent_t start, end;
};

// Items for the warp kernels, with all the device memory they need.
struct warping {
    struct cuda_item items[TILES_MAX];
    int n;
    uint8_t *src, *dst, *block;
    cudaGraphExec_t graph; // the launches one by one, without their host cost
};

// Makes items for n_src pictures, all shaped like src[0], or for n_ops ops, or for as many of both;
// a single one is shared by all items. warping_finish accepts a zeroed or half-made one.
cudaError_t warping_init(struct measure *, struct warping *, const struct image src[], int n_src,
                         const struct op *const ops[], int n_ops);
void warping_finish(struct warping *);
// Launches all items, as many per launch as fit.
cudaError_t warping_launch(const struct warping *, cudaStream_t);

// Queues one round of work on the device without waiting for it.
typedef cudaError_t work_fn(struct measure *, void *work);

// Times a round by the host's clock, from the first call to the end of all work.
cudaError_t measure_by_host(struct measure *, work_fn *, void *work, int rounds, double seconds[]);
// Measures work on measure::up by the device's clock, several rounds in a row: each round is
// submitted while the previous one runs, so the calls themselves do not count.
cudaError_t measure_by_device(struct measure *, work_fn *, void *work, int rounds,
                              double seconds[]);

// See struct measure_driver.
int measure_warp(struct measure *, const struct image src[], int n, const struct op *,
                 bool together, int rounds, double seconds[]);
int measure_elements(struct measure *, const struct image *src, const struct op *const ops[], int n,
                     int rounds, double seconds[]);
int measure_ready(struct measure *, const struct image src[], int n, const struct op *,
                  bool together, int rounds, struct measure_cost costs[]);
int measure_yuv(struct measure *, const struct image *src, const struct op *, int rounds,
                double seconds[]);
int measure_yuv_plain(struct measure *, const struct image *src, const struct op *, uint8_t *to,
                      int rounds, double seconds[]);

#endif
