// Tests trilinear interpolation on CUDA against the reference, byte by byte, over CASES (from the
// environment) random sizes, with arrays on multiples of 16 bytes and others.
//
// usage: trilinear [SEED]    runs one case alone, with the seed that a failed case prints
#include <string.h>

#include "kernels/cuda/launch.h"
#include "tests/kernels/random.h"
#include "tests/test.h"

enum { CASES = 400, FLOATS = 1 << 20, ARRAYS = 6 };

// Arrays of a call: inputs, then outputs.
enum { FEATURES, POINTS, GRAD_OUT, OUT, GRAD_FEATURES, GRAD_POINTS };

struct sides {
    float *host[ARRAYS], *device[ARRAYS], *found;
};

static bool memory_open(struct sides *memory)
{
    bool is_there = (memory->found = (float *)malloc(FLOATS * sizeof(float))) != NULL;
    for (int i = 0; i < ARRAYS; i++) {
        memory->host[i] = (float *)malloc(FLOATS * sizeof(float));
        is_there = is_there && memory->host[i] &&
                   !cudaMalloc((void **)&memory->device[i], FLOATS * sizeof(float));
    }
    return is_there;
}

// Numbers of all magnitudes, few of them 0; no NaN, whose bits may differ.
static float number(struct random *random)
{
    const int scale = random_in(random, -20, 10);
    const float x = (float)random_in(random, -(1 << 20), 1 << 20);
    return scale < 0 ? x / (float)(1 << -scale) : x * (float)(1 << scale);
}

static void fill(struct sides *memory, struct random *random)
{
    for (int i = 0; i < OUT; i++)
        for (int at = 0; at < FLOATS; at++)
            memory->host[i][at] =
                i == POINTS ? (float)random_in(random, -300, 300) / 256 : number(random);
}

static bool check_case(struct sides *memory, uint64_t seed)
{
    struct random random = {seed};
    const int wide = random_in(&random, 0, 9) == 0;
    const size_t f = (size_t)random_in(&random, 1, wide ? 2000 : 70);
    const size_t most = (FLOATS - 8) / (8 * f);
    const size_t n = (size_t)random_in(&random, 1, (int)(most < 1500 ? most : 1500));
    const size_t shift = random_in(&random, 0, 2) ? 0 : (size_t)random_in(&random, 1, 3);
    const bool features = random_in(&random, 0, 7) > 0,
               points = !features || random_in(&random, 0, 7);
    float *host[ARRAYS], *device[ARRAYS];
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < ARRAYS; i++) {
        host[i] = memory->host[i] + shift;
        device[i] = memory->device[i] + shift;
        if (i >= OUT)
            memset(memory->host[i], UNTOUCHED, FLOATS * sizeof(float));
        error = error ? error
                      : cudaMemcpy(memory->device[i], memory->host[i], FLOATS * sizeof(float),
                                   cudaMemcpyHostToDevice);
    }
    if (!features)
        host[GRAD_FEATURES] = device[GRAD_FEATURES] = NULL;
    if (!points)
        host[GRAD_POINTS] = device[GRAD_POINTS] = NULL;
    trilinear_forward(host[OUT], host[FEATURES], host[POINTS], n, f);
    trilinear_backward(host[GRAD_FEATURES], host[GRAD_POINTS], host[GRAD_OUT], host[FEATURES],
                       host[POINTS], n, f);
    error = error ? error
                  : trilinear_cuda_forward(device[OUT], device[FEATURES], device[POINTS], n, f, 0);
    error = error ? error
                  : trilinear_cuda_backward(device[GRAD_FEATURES], device[GRAD_POINTS],
                                            device[GRAD_OUT], device[FEATURES], device[POINTS], n,
                                            f, 0);
    int differ = 0;
    for (int i = OUT; i < ARRAYS; i++) {
        error = error ? error
                      : cudaMemcpy(memory->found, memory->device[i], FLOATS * sizeof(float),
                                   cudaMemcpyDeviceToHost);
        differ += memcmp(memory->found, memory->host[i], FLOATS * sizeof(float)) != 0;
    }
    CHECK(
        !error && differ == 0,
        "again: tests/kernels/cuda/trilinear 0x%llx: %zu points, %zu features: %s, %d of 3 differ",
        (unsigned long long)seed, n, f, cudaGetErrorName(error), differ);
    return !error && differ == 0;
}

static void test_cases(int argc, char **argv)
{
    static struct sides memory;
    struct random random = random_from(argc, argv), numbers = {1};
    const long cases = argc > 1 ? 1 : cases_from(CASES);
    int failures = 0, devices = 0;
    if (cudaGetDeviceCount(&devices) || devices == 0) {
        SKIP("no CUDA device");
        return;
    }
    const bool open = memory_open(&memory);
    CHECK(open, "no memory");
    if (open)
        fill(&memory, &numbers);
    for (long i = 0; open && i < cases && failures < 5; i++)
        failures += !check_case(&memory, argc > 1 ? random.state : random_next(&random));
}

int main(int argc, char **argv)
{
    TEST(test_cases(argc, argv));
    return test_end();
}
