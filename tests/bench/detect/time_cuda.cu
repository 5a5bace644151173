// Times batches of detection on CUDA.
#include "tests/bench/detect/time_cuda.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cuda/launch.h"

struct batch {
    const struct detect *detect;
    struct detect_input *in;
    int n;
    struct detect_result *results; // page-locked
    void *workspace;
    cudaStream_t stream;
};

// Allocates memory that is freed when the process ends.
static cudaError_t batch_init(struct batch *b, const struct detect_input *in)
{
    cudaError_t error = cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking);
    const size_t bytes = detect_result_bytes(b->detect);
    b->in = (struct detect_input *)calloc((size_t)b->n, sizeof b->in[0]);
    for (int i = 0; i < b->n && !error; i++) {
        b->in[i] = *in;
        for (int t = 0; t < DETECT_TENSORS && !error; t++) {
            const size_t size = detect_tensor_bytes(b->detect, t);
            void *memory = NULL;
            error = size ? cudaMalloc(&memory, size) : cudaSuccess;
            b->in[i].tensor[t] = memory;
            if (size && !error)
                error = cudaMemcpy(memory, in->tensor[t], size, cudaMemcpyHostToDevice);
        }
    }
    error = error ? error : cudaMallocHost((void **)&b->results, bytes * b->n);
    error = error ? error : cudaMalloc(&b->workspace, detect_cuda_bytes(b->detect, b->n));
    if (!error)
        memset(b->results, 0, bytes * b->n);
    return error ? error : detect_cuda_init(b->detect, b->workspace, b->n, b->stream);
}

static cudaError_t batch_run(struct batch *b)
{
    const cudaError_t error =
        detect_cuda_launch(b->detect, b->in, b->n, b->results, b->workspace, b->stream);
    return error ? error : cudaStreamSynchronize(b->stream);
}

int time_cuda(struct times *times, const struct detect *detect, const struct detect_input *in,
              int pictures, int runs, struct detect_result *result)
{
    struct batch b = {detect, NULL, pictures, NULL, NULL, NULL};
    cudaError_t error = batch_init(&b, in);
    const size_t bytes = detect_result_bytes(detect);
    times->n = 0;
    for (int i = 0; i < runs / 4 + TIMES_MAX && times->n < TIMES_MAX && !error; i++) {
        const double begin = clock_ms(CLOCK_MONOTONIC);
        error = batch_run(&b);
        if (i >= runs / 4)
            times->ms[times->n++] = clock_ms(CLOCK_MONOTONIC) - begin;
    }
    for (int i = 0; i < pictures && !error; i++)
        if (memcmp(b.results, (uint8_t *)b.results + i * bytes, bytes) != 0)
            return -1;
    if (error) {
        fprintf(stderr, "bench-detect: %s\n", cudaGetErrorString(error));
        return -1;
    }
    memcpy(result, b.results, bytes);
    times_sum_up(times);
    return 0;
}
