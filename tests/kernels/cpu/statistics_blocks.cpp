// The CUDA kernel of statistics (kernels/cuda/statistics.cuh) on the host.
#undef _FORTIFY_SOURCE
#include "tests/kernels/cpu/cuda_block.h"

#include "kernels/cuda/statistics.cuh"

typedef void kernel(struct statistics_batch);

static kernel *running;

static void run_kernel(const void *batch)
{
    running(*(const statistics_batch *)batch);
}

// Runs one picture twice in a launch, and two launches, to check that the totals are zeroed.
// Returns false if the results differ.
extern "C" bool statistics_on_host(const struct statistics *s, const struct image *src, bool many,
                                   struct luma_statistics *ret, uint32_t *cells)
{
    static kernel *const kernels[3][2] = {
        {statistics_kernel<ROWS_BYTES, false>, statistics_kernel<ROWS_BYTES, true>},
        {statistics_kernel<ROWS_WORDS, false>, statistics_kernel<ROWS_WORDS, true>},
        {statistics_kernel<ROWS_ANY, false>, statistics_kernel<ROWS_ANY, true>},
    };
    static statistics_batch batch;
    static statistics_totals totals[2];
    luma_statistics results[2];
    const size_t bytes = (size_t)s->columns * s->rows * sizeof *cells;
    uint32_t *both = (uint32_t *)malloc(2 * bytes);
    bool same = true;
    running = kernels[statistics_rows_of(s->format)][s->params.all];
    for (int time = 0; time < 2; time++) {
        memset(results, 0x5a, sizeof results);
        memset(both, 0x5a, 2 * bytes);
        for (int i = 0; i < 2; i++) {
            batch.item[i] = item_of(s, src);
            batch.item[i].totals = &totals[i];
            batch.item[i].ret = &results[i];
            batch.item[i].cells = both + i * (bytes / sizeof *cells);
        }
        launch_shape shape = launch_shape_of(&batch, 2, s->params.all);
        if (many) { // the launch shape for many pictures
            shape.threads_y = 1;
            batch.rows = 3;
            shape.blocks = (s->rows + 2) / 3;
        }
        grid_run({(unsigned)shape.blocks, 2, 1},
                 {(unsigned)shape.threads_x, (unsigned)shape.threads_y, 1}, run_kernel, &batch);
        same &= memcmp(&results[0], &results[1], sizeof results[0]) == 0;
        same &= memcmp(both, (uint8_t *)both + bytes, bytes) == 0;
        *ret = results[0];
        memcpy(cells, both, bytes);
    }
    free(both);
    return same;
}
