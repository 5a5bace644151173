// `framed-bench`: measures this box against limits measured in the same run.
#ifndef FRAMED_TESTS_BENCH_BENCH_H
#define FRAMED_TESTS_BENCH_BENCH_H

#include "kernels/backend.h"
#include "tests/bench/curve.h"
#include "tests/bench/footage.h"
#include "tests/bench/interrupt.h"
#include "tests/bench/measure.h"
#include "tests/bench/options.h"
#include "tests/bench/report.h"

// What all rows share. One thread, the main one.
struct bench {
    struct bench_options options;
    struct report report;
    struct footage footage;
    const struct backend_driver *cuda; // NULL, like the next two: no GPU, or not asked for
    const struct measure_driver *driver;
    struct measure *device;
    bool cpu;           // the cpu backend's rows are wanted
    int workers;        // of the cpu backend, and threads of its floors
    double device_copy; // bytes/s read and written by a copy inside the device; 0: no GPU
    struct curve curve;
    FILE *drawing; // of the curve; NULL: not asked for
    // Of the whole daemon at full speed with u8 tensors, the last run; 0: none.
    double rate, rate_per_core; // frames/s
    int rate_cameras;
};

// Each group of rows. 0, -EINTR where a signal asks to stop, or negative errno after a note in the
// report; the groups after it still run.
typedef int bench_group(struct bench *);
bench_group bench_copies, bench_yuv, bench_warp, bench_tiles, bench_ready, bench_cameras,
    bench_live, bench_ffmpeg, bench_try;
// Whether every combination of the settings to try is a good configuration; EXIT_OK, or EXIT_USAGE
// after a line on stderr that says which is not and what is allowed.
int try_check(const struct bench_options *);

#endif
