#ifndef FRAMED_TESTS_BENCH_DETECT_TIME_CUDA_H
#define FRAMED_TESTS_BENCH_DETECT_TIME_CUDA_H

#include "kernels/detect.h"
#include "tests/bench/peers/times.h"

#ifdef __cplusplus
extern "C" {
#endif

// Times batches of `pictures` copies of one input whose tensors are on the host, from the launch
// until the results are on the host. Copies the first result to `result`. Returns 0, or -1 if the
// device fails or a result differs from the first.
int time_cuda(struct times *, const struct detect *, const struct detect_input *, int pictures,
              int runs, struct detect_result *result);

#ifdef __cplusplus
}
#endif
#endif
