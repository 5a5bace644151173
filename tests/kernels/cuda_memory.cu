// The CUDA backend with every kind of memory: sources on the host, page-locked or on the device,
// padded and upside down, results page-locked or plain; and that submit never waits for the device.
#include <dlfcn.h>

#include "tests/kernels/cuda_call.h"

static void test_placement(struct backend *backend, const struct camera *camera,
                           enum placement placement, bool plain)
{
    struct source source, pinned;
    struct call call;
    struct plan *plan;
    struct gate gate;
    char what[64];
    snprintf(what, sizeof what, "placement %d", placement);
    source_init(&source, camera, placement);
    source_init(&pinned, camera, PINNED);
    call_init(&call, backend, camera, &source.image, plain);
    CHECK(cuda->plan_open(backend, &plan, &source.image, camera->ops, OPS, 1) == 0, "%s", what);

    for (int round = 0; round < 2; round++) { // the lane is used again
        if (placement == DEVICE) {
            gate_close(&gate);
            CHECK(!decode_into(&source, &pinned.image), "decode");
        }
        CHECK(cuda->submit(plan, &call.job) == 0, "%s", what);
        if (placement == DEVICE) {
            CHECK(sem_trywait(&call.done), "%s: done before the frame was", what);
            gate_open(&gate);
        }
        call_check(&call, camera, what);
    }
    call.job.result[1] = NULL;
    CHECK(cuda->submit(plan, &call.job) == 0, "%s", what);
    call_check(&call, camera, "one result left out");
    CHECK(call.calls == 3, "done was called %d times", call.calls);

    cuda->plan_close(plan);
    call_finish(&call, backend);
    source_finish(&pinned);
    source_finish(&source);
}

static void test_placements(const struct backend_options *options)
{
    static const enum pixel_format formats[] = {PIXEL_BGRA, PIXEL_GBRP, PIXEL_NV12, PIXEL_YUV420P,
                                                PIXEL_P010};
    struct backend *backend;
    CHECK(cuda->open(&backend, options) == 0, "open");
    for (enum pixel_format format : formats) {
        struct camera camera;
        camera_init(&camera, format, 131, 77);
        for (int placement = 0; placement < PLACEMENTS; placement++)
            test_placement(backend, &camera, (enum placement)placement, placement % 2);
        camera_finish(&camera);
    }
    cuda->close(backend);
}

// libavcodec joins the primary context only where it has exactly this flag.
static void test_context_flags(void)
{
    enum { SCHED_BLOCKING_SYNC = 4 };
    int (*get_state)(int device, unsigned *flags, int *active);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    unsigned flags = 0;
    int active = 0;
    CHECK(driver, "a device, but no driver");
    if (!driver)
        return;
    *(void **)&get_state = dlsym(driver, "cuDevicePrimaryCtxGetState");
    CHECK(get_state(0, &flags, &active) == 0 && active, "no primary context");
    CHECK(flags == SCHED_BLOCKING_SYNC, "the primary context has the flags %u", flags);
    dlclose(driver);
}

int main(void)
{
    struct backend_options options = {0, 1 << 20, 0, 0}, many = {0, 0, 3, 1};
    struct backend *backend = NULL;

    CHECK(cuda->open(&backend, &options) == -ENODEV && !backend, "there is no such device");
    options.device = 0;
    cuda->close(NULL);
    cuda->plan_close(NULL);
    int error = cuda->open(&backend, &options);
    CHECK(error == 0 || error == -ENODEV, "open: %d", error);
    if (error) {
        puts("no CUDA device: skipped");
        return test_end("cuda_memory");
    }
    test_context_flags();
    cuda->close(backend);
    test_placements(&options);
    test_placements(&many);
    return test_end("cuda_memory");
}
