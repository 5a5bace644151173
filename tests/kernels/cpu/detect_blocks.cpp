// The CUDA kernels of detection (kernels/cuda/detect.cuh) on the host, one more version for
// tests/kernels/detect.c: the threads of a block switch where they wait for each other. glibc's
// longjmp check rejects jumps to another context's stack.
#undef _FORTIFY_SOURCE

#include "kernels/detect.h"
#include "tests/kernels/cpu/cuda_block.h"

#include "kernels/cuda/detect.cuh"

// --- launches

typedef void kernel(struct detect_batch);

static kernel *running;

static void run_kernel(const void *batch)
{
    running(*(const detect_batch *)batch);
}

static void launch(kernel *kernel, const detect_batch *batch, unsigned x, unsigned y, int threads)
{
    running = kernel;
    grid_run({x, y, 1}, {(unsigned)threads, 1, 1}, run_kernel, batch);
}

// Runs a batch with one picture twice, to check that pictures stay separate, and runs it twice, to
// check that the counters are reset. Returns false if the two results differ.
extern "C" bool detect_on_host(const struct detect *d, const struct detect_input *in,
                               struct detect_result *result)
{
    static detect_batch batch;
    batch.layout = detect_layout_of(d);
    const size_t bytes = detect_result_bytes(d), room = 2 * batch.layout.bytes;
    batch.detect = d;
    batch.pictures = (uint8_t *)calloc(1, room);
    batch.results = (uint8_t *)malloc(2 * bytes);
    batch.result_bytes = bytes;
    batch.n = 2;
    batch.in[0] = batch.in[1] = *in;
    memcpy(batch.results, result, bytes); // unwritten bytes stay
    for (int time = 0; time < 2; time++) {
        memcpy(batch.results + bytes, result, bytes);
        launch(scan_for(d), &batch, (unsigned)(d->params.anchors + SCAN_ANCHORS - 1) / SCAN_ANCHORS,
               2, SCAN_THREADS);
        launch(detect_finish, &batch, 2, 1, FINISH_THREADS);
    }
    const bool same = memcmp(batch.results, batch.results + bytes, bytes) == 0;
    memcpy(result, batch.results, bytes);
    free(batch.results);
    free(batch.pictures);
    return same;
}
