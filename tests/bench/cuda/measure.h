// Private to the driver of measure.h for CUDA: measure.cu (the device and its clock, copies)
// and measure_ops.cu (kernels).
#ifndef FRAMED_TESTS_BENCH_CUDA_MEASURE_H
#define FRAMED_TESTS_BENCH_CUDA_MEASURE_H

#include "kernels/cuda/cuda.h"
#include "kernels/tiles.h"
#include "tests/bench/measure.h"

struct measure {
    int device;
    double peak; // bytes/s
    char description[400];
    cudaStream_t up, down;
    cudaEvent_t start, end;
};

// Items of the warp's kernels, with all of the device's memory that they need.
struct warping {
    struct cuda_item items[TILES_MAX];
    int n;
    uint8_t *src, *dst, *block;
    cudaGraphExec_t graph; // the launches one by one, without the host's part in them
};

// Of n_src pictures, all like src[0], or n_ops ops, or as many of both: the other is then the same
// for all items. warping_finish accepts a zeroed one, and one half made.
cudaError_t warping_init(struct measure *, struct warping *, const struct image src[], int n_src,
                         const struct op *const ops[], int n_ops);
void warping_finish(struct warping *);
// One launch for as many items as there may be in one.
cudaError_t warping_launch(const struct warping *, cudaStream_t);

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
int measure_elements(struct measure *, const struct image *src, const struct op *const ops[], int n,
                     int rounds, double seconds[]);
int measure_ready(struct measure *, const struct image src[], int n, const struct op *,
                  bool together, int rounds, struct measure_cost costs[]);
int measure_yuv(struct measure *, const struct image *src, const struct op *, int rounds,
                double seconds[]);
int measure_yuv_plain(struct measure *, const struct image *src, const struct op *, uint8_t *to,
                      int rounds, double seconds[]);

#endif
