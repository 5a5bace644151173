// Tests a failing device: the CUDA backend reports every job once, accepts no more, can be closed,
// and works again after a reset if the driver gives the process the device again. The failure is a
// source address the device cannot read. It ruins the context of the whole process, so this is a
// program of its own (and memory checkers rightly complain about it).
#include "tests/kernels/cuda/call.h"

enum { JOBS = 4, ROUNDS = 2 };

// A job without a picture, which the copy refuses: only that job fails, the next one succeeds.
static void test_refused(struct backend *backend, const struct camera *camera)
{
    struct call call[3];
    struct plan *plan;
    struct image bad = camera->src;
    bad.memory = MEMORY_PINNED;
    bad.plane[0].data = NULL;
    CHECK(cuda->plan_open(backend, &plan, &camera->src, camera->ops, OPS, 3) == 0, "plan_open");
    for (int i = 0; i < 3; i++) {
        call_init(&call[i], backend, camera, i == 1 ? &bad : &camera->src, MEMORY_PINNED);
        CHECK(cuda->submit(plan, &call[i].job) == 0, "job %d", i);
    }
    call_check(&call[0], camera, "before the refused job");
    CHECK(wait_for(&call[1].done), "the refused job was never reported");
    CHECK(call[1].status == -EREMOTEIO && call[1].calls == 1, "%d, reported %d times",
          call[1].status, call[1].calls);
    call_check(&call[2], camera, "behind the refused job");
    cuda->plan_close(plan);
    for (int i = 0; i < 3; i++)
        call_finish(&call[i], backend);
}

// One good job, then a bad one with others next to and after it.
static void test_failure(struct backend *backend, const struct camera *camera)
{
    struct call call[JOBS];
    struct plan *plan;
    struct image bad = camera->src;
    int submitted;
    bad.memory = MEMORY_CUDA;
    bad.plane[0].data = (uint8_t *)4096;
    CHECK(cuda->plan_open(backend, &plan, &camera->src, camera->ops, OPS, JOBS) == 0, "plan_open");
    for (int i = 0; i < JOBS; i++)
        call_init(&call[i], backend, camera, i == 1 ? &bad : &camera->src,
                  i % 2 ? MEMORY_PINNED : MEMORY_HOST);
    CHECK(cuda->submit(plan, &call[0].job) == 0, "good job");
    call_check(&call[0], camera, "good job");
    call[0].calls = 0;

    CHECK(cuda->submit(plan, &call[1].job) == 0, "bad job");
    for (submitted = 2; submitted < JOBS; submitted++)
        if (cuda->submit(plan, &call[submitted].job) != 0)
            break;
    for (int i = 1; i < submitted; i++)
        CHECK(wait_for(&call[i].done), "job %d was never reported", i);
    CHECK(call[1].status == -EIO, "bad job: %d", call[1].status);
    CHECK(cuda->submit(plan, &call[0].job) == -EIO, "a job for a failed device was taken");

    cuda->plan_close(plan);
    for (int i = 1; i < JOBS; i++)
        CHECK(call[i].calls == (i < submitted), "job %d: done %d times", i, call[i].calls);
    CHECK(call[0].calls == 0, "done for a job that was not taken");
    for (int i = 0; i < JOBS; i++)
        call_finish(&call[i], backend);
}

// Returns false if the driver refuses this process for good, which it must report at once.
static bool test_again(const struct backend_options *options, const struct camera *camera)
{
    struct backend *backend = NULL;
    struct call call;
    struct plan *plan;
    cuda->reset(options);
    int error = cuda->open(&backend, options);
    CHECK(error == 0 || (error == -EIO && !backend), "open after a reset: %d", error);
    if (error)
        return false;
    call_init(&call, backend, camera, &camera->src, MEMORY_PINNED);
    CHECK(cuda->plan_open(backend, &plan, &camera->src, camera->ops, OPS, 1) == 0, "plan_open");
    CHECK(cuda->submit(plan, &call.job) == 0, "submit");
    call_check(&call, camera, "after a reset");
    cuda->plan_close(plan);
    call_finish(&call, backend);
    cuda->close(backend);
    return true;
}

int main(void)
{
    struct backend_options options = {};
    struct backend *backend = NULL;
    struct camera camera;
    camera_init(&camera, PIXEL_BGRA, 131, 77);
    for (int round = 0; round < ROUNDS; round++) {
        int error = cuda->open(&backend, &options);
        CHECK(error == 0 || (error == -ENODEV && round == 0), "open: %d", error);
        if (error) {
            SKIP("no CUDA device");
            break;
        }
        TEST(test_refused(backend, &camera));
        TEST(test_failure(backend, &camera));
        cuda->close(backend);
        if (!test_again(&options, &camera))
            break;
    }
    camera_finish(&camera);
    return test_end();
}
