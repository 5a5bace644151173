#ifndef FRAMED_TESTS_BENCH_FINGERPRINT_TIME_CUDA_H
#define FRAMED_TESTS_BENCH_FINGERPRINT_TIME_CUDA_H

#include "kernels/fingerprint.h"

#ifdef __cplusplus
extern "C" {
#endif

// Prints the time of GPU launches for n pictures, from `luma` and from `sums` of cells, the same
// for all. Returns 0, or -1 if the device fails or a fingerprint is not the reference's.
int time_cuda(const uint8_t (*luma)[FINGERPRINT_LUMA], int n, const struct fingerprint_cells *cells,
              const uint32_t *sums);

#ifdef __cplusplus
}
#endif
#endif
