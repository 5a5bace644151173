// Rows: one 8K frame from BGRA to packed YUV, with its copies.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/bench/bench.h"
#include "tests/bench/flight.h"
#include "tests/bench/floor.h"
#include "tests/bench/link.h"
#include "tests/bench/sample.h"

enum { ROUNDS = 31, CPU_ROUNDS = 9, STEADY_ROUNDS = 5, STEADY_FRAMES = 40, DEPTH = 3 };
static const char group[] = "yuv";
static const struct image shape = {.format = PIXEL_BGRA, .width = 7680, .height = 4320};
static const struct op_params params = {.kind = OP_YUV, .yuv.format = PIXEL_YUV24};

static void add_ms(struct bench *bench, const char *name, double seconds, double limit_seconds,
                   const char *limit_is)
{
    struct row row = row_named(group, "%s", name);
    row.value = seconds * 1e3;
    row.unit = "ms";
    row_limit(&row, limit_seconds * 1e3, "%s", limit_is);
    report_add(&bench->report, &row);
}

static const char copies_alone[] = "its copies: slowest of up, down, both together";

// --- cuda

static int alone(struct bench *bench, struct flight *flight, const char *name, double limit,
                 double *ms)
{
    double seconds[ROUNDS];
    int rc = flight_alone(flight, ROUNDS, seconds);
    if (rc < 0)
        return rc;
    *ms = sample_median(seconds, ROUNDS) * 1e3;
    add_ms(bench, name, *ms / 1e3, limit, copies_alone);
    return 0;
}

static int steady(struct bench *bench, struct flight *flight, double limit)
{
    for (int n = 2; n <= DEPTH; n++) {
        double seconds[STEADY_ROUNDS];
        char name[56];
        int rc = flight_steady(flight, n, STEADY_FRAMES, STEADY_ROUNDS, seconds);
        if (rc < 0)
            return rc;
        const double median = sample_median(seconds, STEADY_ROUNDS);
        snprintf(name, sizeof name, "8K BGRA to YUV, %d frames in flight", n);
        add_ms(bench, name, median, limit, copies_alone);
        if (bench->curve.steady_ms == 0 || median * 1e3 < bench->curve.steady_ms)
            bench->curve.steady_ms = median * 1e3;
    }
    return 0;
}

// Measures the kernel without copies, and plain code with them.
static int raw(struct bench *bench, struct flight *flight, double limit)
{
    const struct image *src = &flight->shuttle[0].job.src;
    double seconds[ROUNDS];
    int rc = bench->driver->yuv(bench->device, src, &flight->op, ROUNDS, seconds);
    if (rc < 0)
        return rc;
    const double bytes = (double)(flight->source_bytes + flight->op.dst_bytes);
    add_ms(bench, "8K BGRA to YUV, kernel alone", sample_median(seconds, ROUNDS),
           bytes / bench->device_copy, "its bytes at the device's copy speed");
    rc = bench->driver->yuv_plain(bench->device, src, &flight->op, flight->results.base, ROUNDS,
                                  seconds);
    if (rc < 0)
        return rc;
    bench->curve.plain_ms = sample_median(seconds, ROUNDS) * 1e3;
    add_ms(bench, "8K BGRA to YUV, plain code, default stream", bench->curve.plain_ms / 1e3, limit,
           copies_alone);
    return 0;
}

typedef int with_flight(struct bench *, struct flight *, int streams);

static int with_streams(struct bench *bench, int streams, int depth, with_flight *measure)
{
    const struct backend_options options = {.streams = streams};
    struct backend *backend = NULL;
    struct flight flight = {0};
    int rc = bench->cuda->open(&backend, &options);
    if (rc == 0)
        rc = flight_open(&flight, bench->cuda, backend, &params, &shape, &bench->footage, depth);
    if (rc == 0 && !flight_pinned(&flight))
        report_note(&bench->report, "the backend could not pin memory: copies are slow");
    if (rc == 0)
        rc = measure(bench, &flight, streams);
    flight_close(&flight);
    if (backend)
        bench->cuda->close(backend);
    return rc;
}

// Runs first: every other row is compared with this limit.
static int measure_limit(struct bench *bench, struct flight *flight, int streams)
{
    struct link_times link;
    (void)streams;
    int rc = link_measure(bench, flight->sources.base, flight->source_bytes, flight->results.base,
                          flight->op.dst_bytes, 1, &link);
    if (rc < 0)
        return rc;
    const double limit = link_slowest(&link);
    bench->curve.limit_ms = limit * 1e3;
    return raw(bench, flight, limit);
}

static int measure_streams(struct bench *bench, struct flight *flight, int streams)
{
    struct curve *curve = &bench->curve;
    char name[56];
    snprintf(name, sizeof name, "8K BGRA to YUV, one frame, %d stream%s", streams,
             streams == 1 ? "" : "s");
    curve->streams[curve->n] = streams;
    return alone(bench, flight, name, curve->limit_ms / 1e3, &curve->ms[curve->n++]);
}

static int measure_auto(struct bench *bench, struct flight *flight, int streams)
{
    const double limit = bench->curve.limit_ms / 1e3;
    (void)streams;
    int rc = alone(bench, flight, "8K BGRA to YUV, one frame, auto", limit, &bench->curve.auto_ms);
    return rc == 0 ? steady(bench, flight, limit) : rc;
}

static int cuda_rows(struct bench *bench)
{
    static const int streams[] = {1, 2, 4, 8, 16, 32};
    int rc = with_streams(bench, 0, 1, measure_limit);
    for (int i = 0; rc == 0 && i < 6; i++)
        rc = interrupted() ? -EINTR : with_streams(bench, streams[i], 1, measure_streams);
    if (rc == 0)
        rc = with_streams(bench, 0, DEPTH, measure_auto);
    const char *device = bench->driver->describe(bench->device);
    snprintf(bench->curve.title, sizeof bench->curve.title,
             "One 7680x4320 BGRA frame to packed YUV, %.*s", (int)strcspn(device, ","), device);
    return rc;
}

// --- cpu

static const char memcpy_alone[] = "memcpy of its bytes on every core";

static int cpu_alone(struct bench *bench, struct flight *flight, int workers, double limit)
{
    double seconds[CPU_ROUNDS];
    char name[56];
    int rc = flight_alone(flight, CPU_ROUNDS, seconds);
    if (rc < 0)
        return rc;
    const double median = sample_median(seconds, CPU_ROUNDS);
    snprintf(name, sizeof name, "8K BGRA to YUV, cpu, one frame, %d thread%s", workers,
             workers == 1 ? "" : "s");
    add_ms(bench, name, median, limit, memcpy_alone);
    if (bench->curve.threads) {
        bench->curve.streams[bench->curve.n] = workers;
        bench->curve.ms[bench->curve.n++] = median * 1e3;
    }
    return 0;
}

static int cpu_steady(struct bench *bench, struct flight *flight, double limit)
{
    double seconds[CPU_ROUNDS];
    int rc = flight_steady(flight, 2, 4, CPU_ROUNDS, seconds);
    if (rc == 0)
        add_ms(bench, "8K BGRA to YUV, cpu, 2 frames in flight", sample_median(seconds, CPU_ROUNDS),
               limit, memcpy_alone);
    return rc;
}

static int with_workers(struct bench *bench, int workers, double limit)
{
    const struct backend_options options = {.workers = workers};
    struct backend *backend = NULL;
    struct flight flight = {0};
    int rc = cpu_backend.open(&backend, &options);
    if (rc == 0)
        rc = flight_open(&flight, &cpu_backend, backend, &params, &shape, &bench->footage, 2);
    if (rc == 0)
        rc = cpu_alone(bench, &flight, workers, limit);
    if (rc == 0 && workers == bench->workers)
        rc = cpu_steady(bench, &flight, limit);
    flight_close(&flight);
    if (backend)
        cpu_backend.close(backend);
    return rc;
}

// Without a GPU, the curve shows the number of threads.
static int cpu_rows(struct bench *bench)
{
    const size_t pixels = (size_t)shape.width * (size_t)shape.height;
    double floor[CPU_ROUNDS];
    int rc = floor_measure(bench->workers, 4 * pixels, 3 * pixels, CPU_ROUNDS, floor);
    const double limit = sample_median(floor, CPU_ROUNDS);
    bench->curve.threads = !bench->device;
    if (bench->curve.threads) {
        bench->curve.limit_ms = limit * 1e3;
        snprintf(bench->curve.title, sizeof bench->curve.title,
                 "One 7680x4320 BGRA frame to packed YUV on the CPU");
    }
    for (int n = 1; rc == 0 && n < bench->workers && bench->curve.threads; n *= 2)
        rc = interrupted() ? -EINTR : with_workers(bench, n, limit);
    return rc == 0 ? with_workers(bench, bench->workers, limit) : rc;
}

int bench_yuv(struct bench *bench)
{
    int rc = bench->device ? cuda_rows(bench) : 0;
    if (rc == 0 && bench->cpu)
        rc = cpu_rows(bench);
    return rc;
}
