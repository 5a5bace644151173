// Tests motion on CUDA against the reference, byte by byte: CASES (from the environment) launches
// of 1 to 24 cameras that keep their states over STEPS pictures. tests/kernels/cpu/blocks compares
// the states themselves.
//
// usage: motion [SEED]    runs one case alone, with the seed that a failed case prints
#include "kernels/cuda/launch.h"
#include "tests/kernels/motion_cases.h"
#include "tests/test.h"

enum { CASES = 60, STEPS = 40, CAMERAS_MAX = 24 };

struct camera {
    struct motion_case reference;
    struct motion_cuda motion;
    uint8_t *memory;
    uint32_t *sums;                         // on the device
    struct motion_changes *changes, *found; // on the device; its copy on the host
};

static cudaError_t camera_init(struct camera *c, uint64_t seed)
{
    motion_case_init(&c->reference, seed);
    const struct motion *m = &c->reference.motion;
    c->found = (struct motion_changes *)motion_memory(motion_changes_bytes(m));
    cudaError_t error = cudaMalloc((void **)&c->memory, motion_cuda_bytes(m));
    error = error ? error : cudaMalloc((void **)&c->sums, motion_sums_bytes(m));
    error = error ? error : cudaMalloc((void **)&c->changes, motion_changes_bytes(m));
    error = error ? error : cudaMemset(c->memory, UNTOUCHED, motion_cuda_bytes(m));
    return error ? error : motion_cuda_init(&c->motion, m, c->memory, c->sums, c->changes, 0);
}

static void camera_finish(struct camera *c)
{
    cudaFree(c->changes);
    cudaFree(c->sums);
    cudaFree(c->memory);
    free(c->found);
    motion_case_finish(&c->reference);
}

static cudaError_t cameras_step(struct camera cameras[], int n)
{
    const struct motion_cuda *motion[CAMERAS_MAX];
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < n && !error; i++) {
        struct motion_case *c = &cameras[i].reference;
        motion_case_step(c);
        motion[i] = &cameras[i].motion;
        error = cudaMemcpy(cameras[i].sums, c->sums, motion_sums_bytes(&c->motion),
                           cudaMemcpyHostToDevice);
    }
    error = error ? error : motion_cuda_launch(motion, n, 0);
    for (int i = 0; i < n && !error; i++)
        error =
            cudaMemcpy(cameras[i].found, cameras[i].changes,
                       motion_changes_bytes(&cameras[i].reference.motion), cudaMemcpyDeviceToHost);
    return error;
}

static long seen_cells, seen_light, seen_jumps;

static bool check_camera(const struct camera *camera, uint64_t seed)
{
    const struct motion_case *c = &camera->reference;
    const struct motion_changes *found = camera->found, *expected = c->changes;
    const bool same = motion_changes_equal(expected, found);
    CHECK(same,
          "again: tests/kernels/cuda/motion 0x%llx: step %d, %d x %d: %u cells, not %u; gains %d "
          "%d, not %d %d; shifts %d %d, not %d %d",
          (unsigned long long)seed, c->steps, c->motion.columns, c->motion.rows, found->count,
          expected->count, found->slow.gain, found->fast.gain, expected->slow.gain,
          expected->fast.gain, found->slow.shift, found->fast.shift, expected->slow.shift,
          expected->fast.shift);
    seen_cells += found->count;
    seen_light += !!(found->flags & MOTION_LIGHT);
    seen_jumps += !!(found->flags & MOTION_JUMP);
    return same;
}

static bool check_case(uint64_t seed)
{
    static struct camera cameras[CAMERAS_MAX];
    struct random random = {seed};
    const int n = random_in(&random, 1, CAMERAS_MAX);
    cudaError_t error = cudaSuccess;
    bool good = true;
    for (int i = 0; i < n && !error; i++)
        error = camera_init(&cameras[i], random_next(&random));
    for (int step = 0; step < STEPS && good && !error; step++) {
        error = cameras_step(cameras, n);
        for (int i = 0; i < n && !error; i++)
            good &= check_camera(&cameras[i], seed);
    }
    CHECK(!error, "again: tests/kernels/cuda/motion 0x%llx: %s", (unsigned long long)seed,
          cudaGetErrorName(error));
    for (int i = 0; i < n; i++)
        camera_finish(&cameras[i]);
    return good && !error;
}

static void test_steps(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    const long cases = argc > 1 ? 1 : cases_from(CASES);
    int devices = 0;
    if (cudaGetDeviceCount(&devices) || devices == 0) {
        SKIP("no CUDA device");
        return;
    }
    bool good = motion_cuda_load() == cudaSuccess;
    CHECK(good, "no kernel");
    for (long i = 0; good && i < cases; i++)
        good = check_case(argc > 1 ? random.state : random_next(&random));
    CHECK(cases < CASES || (seen_cells > 1000 && seen_light > 100 && seen_jumps > 10),
          "too little: %ld cells, %ld lights, %ld jumps", seen_cells, seen_light, seen_jumps);
}

int main(int argc, char **argv)
{
    TEST(test_steps(argc, argv));
    return test_end();
}
