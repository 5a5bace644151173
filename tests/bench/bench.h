// `framed-bench`: measures this machine against limits measured in the same run.
#ifndef FRAMED_TESTS_BENCH_BENCH_H
#define FRAMED_TESTS_BENCH_BENCH_H

#include "kernels/backend.h"
#include "tests/bench/curve.h"
#include "tests/bench/footage.h"
#include "tests/bench/interrupt.h"
#include "tests/bench/measure.h"
#include "tests/bench/options.h"
#include "tests/bench/report.h"

// State that all rows share. Main thread only.
struct bench {
    struct bench_options options;
    struct report report;
    struct footage footage;
    const struct backend_driver *cuda; // NULL, like the next two: no GPU, or not requested
    const struct measure_driver *driver;
    struct measure *device;
    bool cpu;           // measure the cpu backend's rows
    int workers;        // of the cpu backend, also threads of its floors
    double device_copy; // bytes/s read and written by a copy inside the device; 0: no GPU
    struct curve curve;
    FILE *drawing; // file for the curve; NULL: not requested
    // The last full-speed run of the whole daemon with u8 tensors; 0: none.
    double rate, rate_per_core; // frames/s
    int rate_cameras;
};

// A group of rows. Returns 0, -EINTR when a signal requests a stop, or a negative errno after a
// note in the report; the following groups still run.
typedef int bench_group(struct bench *);
bench_group bench_copies, bench_yuv, bench_warp, bench_tiles, bench_ready, bench_cameras,
    bench_live, bench_ffmpeg, bench_try;
// Checks every combination of the settings to try. Returns EXIT_OK, or EXIT_USAGE after a line on
// stderr that names the invalid one and the allowed values.
int try_check(const struct bench_options *);

#endif
