// Times launches of fingerprints on CUDA, alone and in a row, by events.
#include "tests/bench/fingerprint/time_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/launch.h"
#include "tests/bench/peers/times.h"

enum { BEHIND = 200 }; // launches in a row

struct batch {
    uint8_t (*luma)[FINGERPRINT_LUMA];
    struct fingerprint_cells *cells;
    uint32_t *sums; // of n pictures, consecutive
    uint64_t *ret;
    struct fingerprint_cuda_picture *pictures;
    int n;
    bool from_cells;
    cudaStream_t stream;
    cudaEvent_t begin, end;
};

static cudaError_t launch(const struct batch *b)
{
    return b->from_cells ? fingerprint_cuda_cells(b->pictures, b->n, b->stream)
                         : fingerprint_cuda(b->luma, b->ret, b->n, b->stream);
}

// Measures microseconds per launch for `launches` launches in a row.
static cudaError_t time_launches(struct batch *b, int launches, struct times *times)
{
    cudaError_t error = cudaSuccess;
    times->n = 0;
    while (times->n < TIMES_MAX && !error) {
        float ms = 0;
        error = cudaEventRecord(b->begin, b->stream);
        for (int i = 0; i < launches && !error; i++)
            error = launch(b);
        error = error ? error : cudaEventRecord(b->end, b->stream);
        error = error ? error : cudaEventSynchronize(b->end);
        error = error ? error : cudaEventElapsedTime(&ms, b->begin, b->end);
        times->ms[times->n++] = ms * 1e3 / launches;
    }
    times_sum_up(times);
    return error;
}

// Allocates memory that is freed when the process ends.
static cudaError_t batch_init(struct batch *b, const uint8_t (*luma)[FINGERPRINT_LUMA],
                              const struct fingerprint_cells *cells, const uint32_t *sums)
{
    const size_t cell_bytes = (size_t)cells->x.cells * cells->y.cells * sizeof sums[0];
    const size_t luma_bytes = (size_t)b->n * sizeof b->luma[0];
    cudaError_t error = cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking);
    error = error ? error : cudaEventCreate(&b->begin);
    error = error ? error : cudaEventCreate(&b->end);
    error = error ? error : cudaMalloc((void **)&b->luma, luma_bytes);
    error = error ? error : cudaMalloc((void **)&b->sums, b->n * cell_bytes);
    error = error ? error : cudaMalloc((void **)&b->ret, b->n * sizeof b->ret[0]);
    error = error ? error : cudaMalloc((void **)&b->cells, sizeof *cells);
    error = error ? error : cudaMemcpy(b->luma, luma, luma_bytes, cudaMemcpyHostToDevice);
    error = error ? error : cudaMemcpy(b->cells, cells, sizeof *cells, cudaMemcpyHostToDevice);
    b->pictures = (struct fingerprint_cuda_picture *)calloc((size_t)b->n, sizeof b->pictures[0]);
    for (int i = 0; i < b->n && !error; i++) {
        b->pictures[i] = {b->cells, b->sums + i * cell_bytes / sizeof sums[0], b->ret + i};
        error = cudaMemcpy((void *)b->pictures[i].sums, sums, cell_bytes, cudaMemcpyHostToDevice);
    }
    return error;
}

static int differing(const struct batch *b, const uint8_t (*luma)[FINGERPRINT_LUMA], int step)
{
    int differ = 0;
    for (int i = 0; i < b->n; i++) {
        uint64_t found = 0, expected;
        fingerprint_reference(luma + i * step, &expected, 1);
        cudaMemcpy(&found, b->ret + i, sizeof found, cudaMemcpyDeviceToHost);
        differ += found != expected;
    }
    return differ;
}

int time_cuda(const uint8_t (*luma)[FINGERPRINT_LUMA], int n, const struct fingerprint_cells *cells,
              const uint32_t *sums)
{
    static struct times alone, behind;
    struct batch b = {};
    uint8_t of_cells[1][FINGERPRINT_LUMA];
    b.n = n;
    fingerprint_luma(cells, sums, of_cells[0]);
    cudaError_t error = batch_init(&b, luma, cells, sums);
    for (int from_cells = 0; from_cells < 2 && !error; from_cells++) {
        b.from_cells = from_cells;
        error = time_launches(&b, BEHIND, &behind);
        error = error ? error : time_launches(&b, 1, &alone);
        const int differ = from_cells ? differing(&b, of_cells, 0) : differing(&b, luma, 1);
        printf("cuda, %s: %d pictures: %.2f us one behind the other, %.2f alone\n",
               from_cells ? "from cells" : "from luma", n, behind.median, alone.median);
        if (differ) {
            fprintf(stderr, "bench-fingerprint: %d are not the reference's\n", differ);
            return -1;
        }
    }
    if (error)
        fprintf(stderr, "bench-fingerprint: %s\n", cudaGetErrorString(error));
    return error ? -1 : 0;
}
