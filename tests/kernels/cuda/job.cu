// Tests the CUDA backend with many jobs in flight, on any number of streams, whole and in bands: at
// most `depth` jobs of a plan, plans of several threads, and a plan closed while it works.
#include <pthread.h>

#include "tests/kernels/cuda/call.h"

// Accepts `depth` jobs and no more; plan_close waits for them.
static void test_depth(struct backend *backend, bool gates)
{
    struct camera camera;
    struct source source, pinned;
    struct call call[3];
    struct plan *plan;
    struct gate gate;
    camera_init(&camera, PIXEL_NV12, 320, 200);
    source_init(&source, &camera, DEVICE);
    source_init(&pinned, &camera, PINNED);
    for (int i = 0; i < 3; i++)
        call_init(&call[i], backend, &camera, &source.image, i == 1 ? MEMORY_HOST : MEMORY_PINNED);
    CHECK(cuda->plan_open(backend, &plan, &source.image, camera.ops, OPS, 2) == 0, "plan_open");

    call[2].job.src = pinned.image;
    CHECK(cuda->submit(plan, &call[2].job) == -EINVAL, "a host source where there are no buffers");
    call[2].job.src = source.image;
    if (gates)
        gate_close(&gate, PATIENCE);
    CHECK(!decode_into(&source, &pinned.image), "decode");
    CHECK(cuda->submit(plan, &call[0].job) == 0, "first");
    CHECK(cuda->submit(plan, &call[1].job) == 0, "second");
    if (gates) {
        CHECK(cuda->submit(plan, &call[2].job) == -EBUSY, "third of two");
        CHECK(gate_open(&gate), "submit waited for the device");
    }
    call_check(&call[0], &camera, "first");
    CHECK(cuda->submit(plan, &call[2].job) == 0, "third, now that one is done");
    cuda->plan_close(plan);
    CHECK(call[1].calls == 1 && call[2].calls == 1, "plan_close returned before done");
    call_check(&call[1], &camera, "second");
    call_check(&call[2], &camera, "third");

    for (int i = 0; i < 3; i++)
        call_finish(&call[i], backend);
    source_finish(&pinned);
    source_finish(&source);
    camera_finish(&camera);
}

enum { WORKERS = 6, DEPTH = 3, FRAMES = 24 };

struct worker {
    pthread_t thread;
    struct backend *backend;
    struct camera camera;
    struct source source;
    struct call call[DEPTH]; // one per kind of result memory
};

// A camera's thread: DEPTH jobs in flight, each result compared before its buffer is reused. It
// counts errors without CHECK, whose counters are not for several threads.
static void *run_worker(void *argument)
{
    struct worker *worker = (struct worker *)argument;
    struct plan *plan;
    intptr_t wrong = 0;
    wrong += cuda->plan_open(worker->backend, &plan, &worker->source.image, worker->camera.ops, OPS,
                             DEPTH);

    for (int i = 0; i < FRAMES && !wrong; i++) {
        struct call *next = &worker->call[i % DEPTH];
        if (i >= DEPTH)
            wrong += !wait_for(&next->done) || next->status || call_wrong(next, &worker->camera) ||
                     !call_clear(next);
        wrong += !!cuda->submit(plan, &next->job);
    }
    cuda->plan_close(plan);
    for (int i = 0; i < DEPTH; i++)
        wrong += worker->call[i].status || call_wrong(&worker->call[i], &worker->camera);
    return (void *)wrong;
}

static void test_threads(struct backend *backend)
{
    static const enum pixel_format formats[] = {PIXEL_NV12, PIXEL_BGRA, PIXEL_YUYV422};
    static struct worker workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        struct worker *worker = &workers[i];
        worker->backend = backend;
        camera_init(&worker->camera, formats[i % 3], 640 + 2 * i, 361);
        source_init(&worker->source, &worker->camera, (enum placement)(PLACEMENTS - 1 - i));
        if (worker->source.placement == DEVICE)
            CHECK(!decode_into(&worker->source, &worker->camera.src), "decode");
        for (int k = 0; k < DEPTH; k++)
            call_init(&worker->call[k], backend, &worker->camera, &worker->source.image,
                      (enum memory)(MEMORY_HOST + k));
    }
    for (int i = 0; i < WORKERS; i++) {
        struct worker *worker = &workers[i];
        CHECK(!pthread_create(&worker->thread, NULL, run_worker, worker), "thread");
    }
    for (int i = 0; i < WORKERS; i++) {
        void *wrong;
        pthread_join(workers[i].thread, &wrong);
        CHECK(!wrong, "worker %d: %ld results or calls were wrong", i, (long)(intptr_t)wrong);
        for (int k = 0; k < DEPTH; k++)
            call_finish(&workers[i].call[k], backend);
        source_finish(&workers[i].source);
        camera_finish(&workers[i].camera);
    }
}

static void test_options(const struct backend_options *options)
{
    struct backend *backend = NULL;
    CHECK(cuda->open(&backend, options) == 0, "open");
    printf("%s\n", cuda->describe(backend));
    test_depth(backend, gates_work());
    test_threads(backend);
    cuda->close(backend);
}

int main(void)
{
    static const int streams[] = {0, 1, 2, 8, 32};
    struct backend_options options = {};
    struct backend *backend = NULL;
    int error = cuda->open(&backend, &options);
    CHECK(error == 0 || error == -ENODEV, "open: %d", error);
    if (error) {
        SKIP("no CUDA device");
        return test_end();
    }
    cuda->close(backend);
    for (int n : streams) {
        options.streams = n;
        for (options.band_bytes = 0; options.band_bytes <= 128 << 10;
             options.band_bytes += 128 << 10)
            TEST(test_options(&options));
    }
    return test_end();
}
