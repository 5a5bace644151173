// Rows: 1080p pictures to 640x640 tensors, the kernel alone and with its copies, microseconds per
// frame.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "tests/bench/bench.h"
#include "tests/bench/flight.h"
#include "tests/bench/floor.h"
#include "tests/bench/link.h"
#include "tests/bench/sample.h"

enum {
    ROUNDS = 31,
    CPU_ROUNDS = 9,
    SECTOR = 32, // bytes: the smallest transfer of a GPU's memory
    LINE = 64,   // bytes: a CPU's cache line
};
static const char group[] = "warp";
static const enum pixel_format formats[] = {PIXEL_NV12, PIXEL_YUV420P, PIXEL_BGRA};
static const char *const dtypes[] = {"u8", "s8", "f16", "f32"}; // by enum dtype

// One source format and one element type.
struct test {
    struct bench *bench;
    enum pixel_format format;
    enum dtype dtype;
    enum filter filter;
    struct flight flight;
    double seconds; // set by filter_time
};

__attribute__((format(printf, 5, 6))) static void add_us(const struct test *test, const char *what,
                                                         double seconds, double limit_seconds,
                                                         const char *limit_is, ...)
{
    struct row row = row_named(group, "%s to %s, %s", pixel_format_name(test->format),
                               dtypes[test->dtype], what);
    char text[96];
    va_list arguments;
    va_start(arguments, limit_is);
    vsnprintf(text, sizeof text, limit_is, arguments);
    va_end(arguments);
    row.value = seconds * 1e6;
    row.unit = "us";
    row_limit(&row, limit_seconds * 1e6, "%s", text);
    report_add(&test->bench->report, &row);
}

static struct op_params params_of(const struct test *test)
{
    struct op_params params = {.kind = OP_WARP, .warp = {.width = 640, .height = 640}};
    params.warp.dtype = test->dtype;
    params.warp.filter = test->filter;
    params.warp.scale = test->dtype == DTYPE_U8 ? 1 : 1 / 255.0;
    for (int i = 0; i < 3; i++) {
        params.warp.fill[i] = 114;
        params.warp.std[i] = 1;
    }
    return params;
}

// --- cuda

static int kernel_rows(struct test *test)
{
    static const char *const what[] = {"kernel, a launch each", "kernel, 32 in one launch"};
    struct bench *bench = test->bench;
    struct image src[FLIGHT_MAX];
    const struct warp *warp = &test->flight.op.warp;
    for (int i = 0; i < FLIGHT_MAX; i++)
        src[i] = test->flight.shuttle[i].job.src;
    const double result = (double)test->flight.op.dst_bytes;
    const double must = (double)warp_reads(warp, &src[0], SECTOR, false) + result;
    const double taps = (double)warp_reads(warp, &src[0], SECTOR, true) + result;
    for (int together = 0; together <= 1; together++) {
        double seconds[ROUNDS];
        int rc = bench->driver->warp(bench->device, src, FLIGHT_MAX, &test->flight.op, together,
                                     ROUNDS, seconds);
        if (rc < 0)
            return rc;
        add_us(test, what[together], sample_median(seconds, ROUNDS) / FLIGHT_MAX,
               must / bench->device_copy,
               "%.2f MB at the device's copy speed (%.2f MB with taps of weight 0)", must / 1e6,
               taps / 1e6);
    }
    return 0;
}

// A single frame is not split: its download follows its upload.
static int one_with_copies(struct test *test)
{
    struct bench *bench = test->bench;
    struct flight *flight = &test->flight;
    double seconds[ROUNDS], copies[ROUNDS];
    const struct measure_copies both = {.from = flight->sources.base,
                                        .to = flight->results.base,
                                        .up_bytes = flight->source_bytes,
                                        .down_bytes = flight->op.dst_bytes,
                                        .up = 1,
                                        .down = 1,
                                        .in_turn = true};
    int rc = bench->driver->copies(bench->device, &both, ROUNDS, copies);
    if (rc == 0)
        rc = flight_alone(flight, ROUNDS, seconds);
    if (rc == 0)
        add_us(test, "with copies, one frame", sample_median(seconds, ROUNDS),
               sample_median(copies, ROUNDS), "its copies, up and then down");
    return rc;
}

static int many_with_copies(struct test *test)
{
    struct flight *flight = &test->flight;
    struct link_times link;
    double seconds[5];
    int rc = link_measure(test->bench, flight->sources.base, flight->source_stride,
                          flight->results.base, flight->result_stride, FLIGHT_MAX, &link);
    if (rc == 0)
        rc = flight_steady(flight, FLIGHT_MAX, 8 * FLIGHT_MAX, 5, seconds);
    if (rc == 0)
        add_us(test, "with copies, 32 in flight", sample_median(seconds, 5),
               link_slowest(&link) / FLIGHT_MAX, "its copies: slowest of up, down, both together");
    return rc;
}

static int cuda_rows(struct test *test)
{
    int rc = kernel_rows(test);
    if (rc == 0)
        rc = one_with_copies(test);
    return rc == 0 ? many_with_copies(test) : rc;
}

// --- cpu

static int cpu_rows(struct test *test)
{
    static const char limit_is[] = "memcpy of its %.2f MB on every core";
    struct flight *flight = &test->flight;
    double seconds[CPU_ROUNDS], floor[CPU_ROUNDS];
    const size_t read = warp_reads(&flight->op.warp, &flight->shuttle[0].job.src, LINE, false);
    const double megabytes = (double)(read + flight->op.dst_bytes) / 1e6;
    int rc = floor_measure(test->bench->workers, read, flight->op.dst_bytes, CPU_ROUNDS, floor);
    const double limit = sample_median(floor, CPU_ROUNDS);
    if (rc == 0)
        rc = flight_alone(flight, CPU_ROUNDS, seconds);
    if (rc < 0)
        return rc;
    add_us(test, "cpu, one frame", sample_median(seconds, CPU_ROUNDS), limit, limit_is, megabytes);
    rc = flight_steady(flight, FLIGHT_MAX, FLIGHT_MAX, 3, seconds);
    if (rc == 0)
        add_us(test, "cpu, 32 in flight", sample_median(seconds, 3), limit, limit_is, megabytes);
    return rc;
}

// --- both

typedef int test_rows(struct test *);

static int run_test(struct test *test, const struct backend_driver *driver, struct backend *backend,
                    test_rows *rows)
{
    struct bench *bench = test->bench;
    const struct image shape = {.format = test->format, .width = 1920, .height = 1080};
    const struct op_params params = params_of(test);
    int rc =
        flight_open(&test->flight, driver, backend, &params, &shape, &bench->footage, FLIGHT_MAX);
    if (rc == 0 && driver == bench->cuda && !flight_pinned(&test->flight))
        report_note(&bench->report, "the backend could not pin memory: copies are slow");
    if (rc == 0)
        rc = rows(test);
    flight_close(&test->flight);
    return rc;
}

// --- filters, next to bilinear in the same run

static int filter_time(struct test *test)
{
    struct bench *bench = test->bench;
    const bool on_device = test->flight.driver != &cpu_backend;
    struct image src[FLIGHT_MAX];
    double seconds[ROUNDS];
    int rc;
    for (int i = 0; i < FLIGHT_MAX; i++)
        src[i] = test->flight.shuttle[i].job.src;
    if (on_device)
        rc = bench->driver->warp(bench->device, src, FLIGHT_MAX, &test->flight.op, true, ROUNDS,
                                 seconds);
    else
        rc = flight_alone(&test->flight, CPU_ROUNDS, seconds);
    test->seconds = on_device ? sample_median(seconds, ROUNDS) / FLIGHT_MAX
                              : sample_median(seconds, CPU_ROUNDS);
    return rc;
}

static void add_filter(struct test *test, const char *name, bool on_device, double bilinear)
{
    char what[64];
    snprintf(what, sizeof what, "%s, %s", name,
             on_device ? "kernel, 32 in one launch" : "cpu, one frame");
    add_us(test, what, test->seconds, bilinear, "bilinear");
}

static int run_filters(struct bench *bench, const struct backend_driver *driver,
                       struct backend *backend, enum pixel_format format)
{
    static const char *const names[] = {"", "area", "triangle"}; // by enum filter
    double bilinear = 0;
    int rc = 0;
    for (enum filter filter = FILTER_BILINEAR; rc == 0 && filter <= FILTER_TRIANGLE; filter++) {
        struct test test = {.bench = bench, .format = format, .dtype = DTYPE_U8, .filter = filter};
        rc = run_test(&test, driver, backend, filter_time);
        if (filter == FILTER_BILINEAR)
            bilinear = test.seconds;
        else if (rc == 0)
            add_filter(&test, names[filter], driver != &cpu_backend, bilinear);
    }
    return rc;
}

static int run_tests(struct bench *bench, const struct backend_driver *driver, test_rows *rows)
{
    static const enum dtype types[] = {DTYPE_U8, DTYPE_F16, DTYPE_F32};
    const struct backend_options options = {.workers = bench->workers};
    struct backend *backend = NULL;
    int rc = driver->open(&backend, &options);
    for (int i = 0; rc == 0 && i < 9; i++) {
        struct test test = {.bench = bench, .format = formats[i / 3], .dtype = types[i % 3]};
        rc = interrupted() ? -EINTR : run_test(&test, driver, backend, rows);
    }
    for (int i = 0; rc == 0 && i < 3; i++)
        rc = interrupted() ? -EINTR : run_filters(bench, driver, backend, formats[i]);
    if (backend)
        driver->close(backend);
    return rc;
}

int bench_warp(struct bench *bench)
{
    int rc = bench->device ? run_tests(bench, bench->cuda, cuda_rows) : 0;
    if (rc == 0 && bench->cpu)
        rc = run_tests(bench, &cpu_backend, cpu_rows);
    return rc;
}
