// Tests fingerprints on CUDA against the reference, byte by byte, from lumas and from sums of
// cells, over CASES (from the environment) random batches of up to 200 pictures.
//
// usage: fingerprint [SEED]    runs one batch alone, with the seed that a failed one prints
#include "kernels/cuda/launch.h"
#include "tests/kernels/fingerprint_cases.h"
#include "tests/test.h"

enum { CASES = 200, PICTURES_MAX = 200, GRIDS = 12 };

static const size_t SUMS = (size_t)FINGERPRINT_CELLS_MAX * FINGERPRINT_CELLS_MAX;

static struct {
    uint8_t (*luma)[FINGERPRINT_LUMA], (*device_luma)[FINGERPRINT_LUMA];
    uint64_t *device_ret, *pinned_ret;
    uint32_t *sums, *device_sums;     // GRIDS times SUMS
    struct fingerprint_cells *device; // GRIDS
    cudaStream_t stream;
} memory;

static bool memory_open(void)
{
    memory.luma = (uint8_t(*)[FINGERPRINT_LUMA])malloc(PICTURES_MAX * sizeof memory.luma[0]);
    memory.sums = (uint32_t *)malloc(GRIDS * SUMS * sizeof(uint32_t));
    return !cudaMalloc((void **)&memory.device_luma, PICTURES_MAX * sizeof memory.luma[0]) &&
           !cudaMalloc((void **)&memory.device_ret, (PICTURES_MAX + 1) * sizeof(uint64_t)) &&
           !cudaMallocHost((void **)&memory.pinned_ret, (PICTURES_MAX + 1) * sizeof(uint64_t)) &&
           !cudaMalloc((void **)&memory.device_sums, GRIDS * SUMS * sizeof(uint32_t)) &&
           !cudaMalloc((void **)&memory.device, GRIDS * sizeof(struct fingerprint_cells)) &&
           !fingerprint_cuda_load() && !cudaStreamCreate(&memory.stream);
}

static bool check_lumas(uint64_t seed)
{
    struct random random = {seed};
    const int n = random_in(&random, 0, PICTURES_MAX);
    uint64_t expected[PICTURES_MAX + 1], found[PICTURES_MAX + 1];
    for (int i = 0; i < n; i++)
        luma_random(memory.luma[i], &random);
    memset(expected, UNTOUCHED, sizeof expected);
    fingerprint_reference(memory.luma, expected, n);
    cudaError_t error = cudaMemcpy(memory.device_luma, memory.luma, n * sizeof memory.luma[0],
                                   cudaMemcpyHostToDevice);
    error = error ? error : cudaMemset(memory.device_ret, UNTOUCHED, sizeof found);
    error = error ? error : cudaDeviceSynchronize();
    error =
        error ? error : fingerprint_cuda(memory.device_luma, memory.device_ret, n, memory.stream);
    error = error ? error : cudaStreamSynchronize(memory.stream);
    error =
        error ? error : cudaMemcpy(found, memory.device_ret, sizeof found, cudaMemcpyDeviceToHost);
    const bool equal = !error && memcmp(found, expected, sizeof found) == 0;
    CHECK(equal, "again: tests/kernels/cuda/fingerprint 0x%llx: %d pictures: %s",
          (unsigned long long)seed, n, cudaGetErrorName(error));
    return equal;
}

// Uploads the cells of picture i and computes its expected fingerprint.
static cudaError_t grid_add(int i, struct random *random, uint64_t *expected)
{
    struct fingerprint_cells cells;
    struct grid x, y;
    uint8_t luma[1][FINGERPRINT_LUMA];
    uint32_t *sums = memory.sums + i * SUMS;
    grid_random(&x, random);
    grid_random(&y, random);
    sums_random(sums, &x, &y, random);
    CHECK(!fingerprint_cells_init(&cells, x.cells, x.edges, y.cells, y.edges), "init");
    fingerprint_luma(&cells, sums, luma[0]);
    fingerprint_reference(luma, expected, 1);
    const cudaError_t error =
        cudaMemcpy(memory.device + i, &cells, sizeof cells, cudaMemcpyHostToDevice);
    return error ? error
                 : cudaMemcpy(memory.device_sums + i * SUMS, sums,
                              (size_t)x.cells * y.cells * sizeof sums[0], cudaMemcpyHostToDevice);
}

static bool check_cells(uint64_t seed)
{
    struct random random = {seed};
    const int n = random_in(&random, 1, PICTURES_MAX);
    struct fingerprint_cuda_picture pictures[PICTURES_MAX];
    uint64_t of_grid[GRIDS];
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < GRIDS && !error; i++)
        error = grid_add(i, &random, &of_grid[i]);
    const bool pinned = random_next(&random) % 2;
    uint64_t *ret = pinned ? memory.pinned_ret : memory.device_ret, found[PICTURES_MAX];
    for (int i = 0; i < n; i++)
        pictures[i] = {memory.device + i % GRIDS, memory.device_sums + i % GRIDS * SUMS, ret + i};
    error = error ? error : cudaMemset(ret, UNTOUCHED, sizeof found);
    error = error ? error : cudaDeviceSynchronize();
    error = error ? error : fingerprint_cuda_cells(pictures, n, memory.stream);
    error = error ? error : cudaStreamSynchronize(memory.stream);
    error = error ? error : cudaMemcpy(found, ret, n * sizeof found[0], cudaMemcpyDefault);
    int differ = 0;
    for (int i = 0; i < n; i++)
        differ += found[i] != of_grid[i % GRIDS];
    CHECK(!error && differ == 0, "again: tests/kernels/cuda/fingerprint 0x%llx: %d of %d: %s",
          (unsigned long long)seed, differ, n, cudaGetErrorName(error));
    return !error && differ == 0;
}

static void test_batches(bool (*check)(uint64_t seed), long cases, int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    int failures = 0, devices = 0;
    if (cudaGetDeviceCount(&devices) || devices == 0) {
        SKIP("no CUDA device");
        return;
    }
    const bool open = memory.luma || memory_open();
    CHECK(open, "no memory");
    for (long i = 0; open && i < cases && failures < 5; i++)
        failures += !check(argc > 1 ? random.state : random_next(&random));
}

int main(int argc, char **argv)
{
    const long cases = argc > 1 ? 1 : cases_from(CASES);
    TEST(test_batches(check_lumas, cases, argc, argv));
    TEST(test_batches(check_cells, (cases + 9) / 10, argc, argv));
    return test_end();
}
