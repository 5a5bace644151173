// Tests statistics on CUDA against the reference, byte by byte, over CASES (from the environment)
// random launches of 1 to 40 pictures, of any formats, sizes and grids, and both passes.
//
// usage: statistics [SEED]    runs one launch alone, with the seed that a failed one prints
#include "kernels/cuda/launch.h"
#include "tests/kernels/statistics_cases.h"
#include "tests/test.h"

enum { CASES = 400, PICTURES_MAX = 40 };

static const size_t ARENA = (size_t)256 << 20;

static struct {
    uint8_t *host, *device; // ARENA bytes each
    size_t used;
    struct luma_statistics *results; // page-locked
    uint8_t *workspace;
    cudaStream_t stream;
} memory;

static bool memory_open(void)
{
    memory.host = (uint8_t *)malloc(ARENA);
    return memory.host && !cudaMalloc((void **)&memory.device, ARENA) &&
           !cudaMalloc((void **)&memory.workspace, PICTURES_MAX * STATISTICS_CUDA_BYTES) &&
           !cudaMemset(memory.workspace, 0, PICTURES_MAX * STATISTICS_CUDA_BYTES) &&
           !cudaMallocHost((void **)&memory.results, PICTURES_MAX * sizeof *memory.results) &&
           !cudaStreamCreate(&memory.stream);
}

static size_t memory_take(size_t bytes)
{
    const size_t at = memory.used;
    memory.used = (at + bytes + 255) / 256 * 256;
    CHECK(memory.used <= ARENA, "%zu bytes of %zu", memory.used, ARENA);
    return at;
}

static size_t cells_bytes(const struct statistics *s)
{
    return (size_t)(s->columns * s->rows) * sizeof(uint32_t);
}

static void picture_place(struct statistics_case *c, struct statistics_cuda_picture *picture, int i)
{
    const size_t at = memory_take(c->bytes), cells = memory_take(cells_bytes(&c->statistics));
    memcpy(memory.host + at, c->memory, c->bytes);
    picture->statistics = &c->statistics;
    picture->src = c->image;
    picture->src.memory = MEMORY_CUDA;
    for (int p = 0; p < PLANES_MAX; p++)
        if (c->image.plane[p].data)
            picture->src.plane[p].data = memory.device + at + (c->image.plane[p].data - c->memory);
    picture->workspace = memory.workspace + i * STATISTICS_CUDA_BYTES;
    picture->ret = &memory.results[i];
    picture->cells = (uint32_t *)(memory.device + cells);
}

static bool check_picture(const struct statistics_case *c,
                          const struct statistics_cuda_picture *picture, uint64_t seed)
{
    const struct statistics *s = &c->statistics;
    const uint8_t *cells = memory.host + ((uint8_t *)picture->cells - memory.device);
    const bool equal = luma_statistics_equal(picture->ret, &c->expected);
    const bool cells_equal = !memcmp(cells, c->cells, cells_bytes(s));
    CHECK(equal && cells_equal,
          "again: tests/kernels/cuda/statistics 0x%llx: %s %dx%d, %dx%d cells, all %d: %s differ",
          (unsigned long long)seed, pixel_format_name(s->format), s->width, s->height, s->columns,
          s->rows, s->params.all, equal ? "cells" : "statistics");
    return equal && cells_equal;
}

static bool check_launch(uint64_t seed)
{
    static struct statistics_case cases[PICTURES_MAX];
    struct statistics_cuda_picture pictures[PICTURES_MAX];
    struct random random = {seed};
    const int n = one_in(&random, 8) ? PICTURES_MAX : random_in(&random, 1, 4);
    bool good = true;
    memory.used = 0;
    for (int i = 0; i < n; i++) {
        const enum pixel_format format = one_in(&random, 2)   ? PIXEL_NV12
                                         : one_in(&random, 3) ? PIXEL_P010
                                                              : source_random(&random);
        case_init(&cases[i], format, !one_in(&random, 4), &random);
        picture_place(&cases[i], &pictures[i], i);
    }
    cudaError_t error = cudaMemcpy(memory.device, memory.host, memory.used, cudaMemcpyHostToDevice);
    for (int time = 0; time < 2 && !error && good; time++) { // the second run sees leftovers
        memset(memory.results, UNTOUCHED, n * sizeof *memory.results);
        error = statistics_cuda_launch(pictures, n, memory.stream);
        error = error ? error : cudaStreamSynchronize(memory.stream);
        error = error ? error
                      : cudaMemcpy(memory.host, memory.device, memory.used, cudaMemcpyDeviceToHost);
        for (int i = 0; i < n && !error; i++)
            good &= check_picture(&cases[i], &pictures[i], seed);
    }
    CHECK(!error, "again: tests/kernels/cuda/statistics 0x%llx: %s", (unsigned long long)seed,
          cudaGetErrorName(error));
    for (int i = 0; i < n; i++)
        case_finish(&cases[i]);
    return good && !error;
}

static void test_launches(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    const long cases = argc > 1 ? 1 : cases_from(CASES);
    int failures = 0, devices = 0;
    if (cudaGetDeviceCount(&devices) || devices == 0) {
        SKIP("no CUDA device");
        return;
    }
    const bool open = memory_open() && !statistics_cuda_load();
    CHECK(open, "no memory, or no kernels");
    for (long i = 0; open && i < cases && failures < 5; i++)
        failures += !check_launch(argc > 1 ? random.state : random_next(&random));
}

int main(int argc, char **argv)
{
    TEST(test_launches(argc, argv));
    return test_end();
}
