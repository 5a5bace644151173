// Tests the CUDA backend's busy times against copies of the same bytes timed here, and against
// elapsed time.
#include <math.h>

#include "kernels/cuda/cuda.h"
#include "tests/kernels/cuda/call.h"

enum { DEPTH = 3, WARM_MS = 300, TIMED_MS = 400 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

// Returns the seconds of one copy of `bytes` of page-locked memory, alone; minimum of several.
static double copy_seconds(size_t bytes, enum cudaMemcpyKind kind)
{
    uint8_t *host = NULL, *device = NULL;
    cudaEvent_t begin, end;
    double least = INFINITY;
    CHECK(!cudaMallocHost((void **)&host, bytes) && !cudaMalloc((void **)&device, bytes), "malloc");
    CHECK(!cudaEventCreate(&begin) && !cudaEventCreate(&end), "events");
    for (int i = 0; i < 20; i++) {
        const bool up = kind == cudaMemcpyHostToDevice;
        float ms = 0;
        CHECK(!cudaEventRecord(begin), "begin");
        CHECK(!cudaMemcpyAsync(up ? device : host, up ? host : device, bytes, kind), "copy");
        CHECK(!cudaEventRecord(end) && !cudaEventSynchronize(end), "end");
        CHECK(!cudaEventElapsedTime(&ms, begin, end), "elapsed");
        least = fmin(least, ms / 1e3);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaFree(device);
    cudaFreeHost(host);
    return least;
}

// --- a camera at work

struct work {
    struct backend *backend;
    struct plan *plan;
    struct camera camera;
    struct source source;
    struct call call[DEPTH];
    int in_flight; // at most DEPTH
};

static void work_init(struct work *work, struct backend *backend, enum placement placement,
                      enum memory results, int in_flight)
{
    work->backend = backend;
    work->in_flight = in_flight;
    camera_init(&work->camera, PIXEL_BGRA, 1920, 1080);
    source_init(&work->source, &work->camera, placement);
    for (int i = 0; i < DEPTH; i++) {
        call_init(&work->call[i], backend, &work->camera, &work->source.image, results);
        work->call[i].results[MOVES].op = NULL; // its tables would be uploaded
    }
    CHECK(!cuda->plan_open(backend, &work->plan, &work->source.image, work->camera.ops, OPS, DEPTH),
          "plan_open");
}

static void work_finish(struct work *work)
{
    cuda->plan_close(work->plan);
    for (int i = 0; i < DEPTH; i++)
        call_finish(&work->call[i], work->backend);
    source_finish(&work->source);
    camera_finish(&work->camera);
}

// Returns the number of jobs; all are done.
static int work_for(struct work *work, int ms)
{
    const double end = now_s() + ms / 1e3;
    int jobs = 0, failed = 0;
    while (now_s() < end) {
        for (int i = 0; i < work->in_flight; i++)
            failed += !!cuda->submit(work->plan, &work->call[i].job);
        for (int i = 0; i < work->in_flight; i++)
            failed += !wait_for(&work->call[i].done) || work->call[i].status;
        jobs += work->in_flight;
        if (failed)
            break;
    }
    CHECK(failed == 0, "%d jobs failed", failed);
    return jobs;
}

// Busy seconds of each stage and elapsed seconds, all per job.
struct figures {
    double upload, kernel, download, wall;
};

static struct figures measure(struct backend *backend, enum placement placement,
                              enum memory results, int in_flight)
{
    struct work work;
    work_init(&work, backend, placement, results, in_flight);
    work_for(&work, WARM_MS);
    const struct device_busy before = cuda->busy(backend);
    const double begin = now_s();
    const int jobs = work_for(&work, TIMED_MS);
    const double wall = now_s() - begin;
    const struct device_busy after = cuda->busy(backend);
    work_finish(&work);
    const double unit = 1e9 * jobs;
    struct figures figures = {(after.upload - before.upload) / unit,
                              (after.kernel - before.kernel) / unit,
                              (after.download - before.download) / unit, wall / jobs};
    printf("source %d, results %d, %d in flight: %.1f us up, %.1f kernels, %.1f down of %.1f\n",
           placement, results, in_flight, figures.upload * 1e6, figures.kernel * 1e6,
           figures.download * 1e6, figures.wall * 1e6);
    return figures;
}

// --- the stopwatch

// Three cameras in step, 40 ms per picture and 5 ms apart: each must get the stopwatch regularly.
// Time passes by moving the due time closer.
static void test_turns(void)
{
    enum { CAMERAS = 3, PICTURES = 1500 };
    static struct backend backend;
    static struct plan plan[CAMERAS];
    static const int64_t until_next_ns[CAMERAS] = {5000000, 5000000, 30000000};
    int timed[CAMERAS] = {};
    for (int i = 0; i < PICTURES * CAMERAS; i++) {
        const int camera = i % CAMERAS;
        plan[camera].backend = &backend;
        timed[camera] += cuda_stopwatch_take(&plan[camera]) != NULL;
        backend.watch.taken = false;
        backend.watch.due_ns -= until_next_ns[camera];
    }
    const int all = timed[0] + timed[1] + timed[2];
    CHECK(all > 400 && all < 650, "%d times in a minute", all);
    for (int i = 0; i < CAMERAS; i++)
        CHECK(timed[i] >= 20, "camera %d is timed %d times in a minute", i, timed[i]);
}

// --- what must hold

// The slack covers the cost of cutting.
static void expect_copy(const char *what, double seconds, double alone)
{
    CHECK(seconds > alone / 2 && seconds < 2 * alone + 300e-6, "%s: %g us, but %g us alone", what,
          seconds * 1e6, alone * 1e6);
}

static void expect_within(const char *what, double seconds, double wall)
{
    CHECK(seconds < 1.25 * wall, "%s: %g us of %g us", what, seconds * 1e6, wall * 1e6);
}

static size_t result_bytes(const struct camera *camera)
{
    size_t bytes = 0;
    for (int i = 0; i < OPS; i++)
        bytes += camera->op[i].dst_bytes;
    return bytes;
}

static void test_copies(struct backend *backend, size_t source, size_t results)
{
    const double up = copy_seconds(source, cudaMemcpyHostToDevice);
    const double down = copy_seconds(results, cudaMemcpyDeviceToHost);
    static const enum placement placements[] = {HOST, PINNED};
    for (enum placement placement : placements) {
        const struct figures figures = measure(backend, placement, MEMORY_PINNED, DEPTH);
        expect_copy("upload", figures.upload, up);
        expect_copy("download", figures.download, down);
        expect_within("upload", figures.upload, figures.wall);
        expect_within("download", figures.download, figures.wall);
        CHECK(figures.kernel > 0, "no kernel");
    }
}

static void test_device(struct backend *backend, size_t results)
{
    const double down = copy_seconds(results, cudaMemcpyDeviceToHost);
    struct figures figures = measure(backend, DEVICE, MEMORY_CUDA, 1);
    CHECK(figures.upload == 0 && figures.download == 0, "%g s up, %g s down", figures.upload,
          figures.download);
    // The yuv op alone reads and writes over 10 MB; no memory does that in a microsecond.
    CHECK(figures.kernel > 1e-6, "%g s of kernels", figures.kernel);
    expect_within("kernel", figures.kernel, figures.wall); // one job at a time

    figures = measure(backend, DEVICE, MEMORY_PINNED, DEPTH);
    CHECK(figures.upload == 0, "%g s up", figures.upload);
    expect_copy("download", figures.download, down);

    figures = measure(backend, PINNED, MEMORY_CUDA, DEPTH);
    CHECK(figures.upload > 0 && figures.download == 0, "%g s up, %g s down", figures.upload,
          figures.download);
}

static void test_options(const struct backend_options *options)
{
    struct backend *backend = NULL;
    struct camera camera;
    CHECK(cuda->open(&backend, options) == 0, "open");
    printf("%s\n", cuda->describe(backend));
    const struct device_busy busy = cuda->busy(backend);
    CHECK(busy.upload == 0 && busy.kernel == 0 && busy.download == 0, "busy before the first job");

    camera_init(&camera, PIXEL_BGRA, 1920, 1080);
    struct image tight = camera.src;
    test_copies(backend, image_lay_out(&tight, NULL), result_bytes(&camera));
    test_device(backend, result_bytes(&camera));
    camera_finish(&camera);
    cuda->close(backend);
}

int main(void)
{
    struct backend_options options = {};
    struct backend *backend = NULL;
    TEST(test_turns());
    int error = cuda->open(&backend, &options);
    CHECK(error == 0 || error == -ENODEV, "open: %d", error);
    if (error) {
        SKIP("no CUDA device");
        return test_end();
    }
    cuda->close(backend);
    TEST(test_options(&options));
    options.streams = 4;
    options.band_bytes = 4 << 20;
    TEST(test_options(&options));
    return test_end();
}
