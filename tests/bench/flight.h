// One op through a backend as the daemon uses it: pinned sources and results, several frames in
// flight. One thread.
#ifndef FRAMED_TESTS_BENCH_FLIGHT_H
#define FRAMED_TESTS_BENCH_FLIGHT_H

#include <semaphore.h>

#include "daemon/base/region.h"
#include "tests/bench/footage.h"

enum { FLIGHT_MAX = 32 };

struct shuttle { // one frame's buffers
    struct job job;
    struct job_result result;
    sem_t done;
    int status;
    int64_t landed_ns; // CLOCK_MONOTONIC time of the backend's report
};

struct flight {
    const struct backend_driver *driver;
    struct backend *backend;
    struct op op;
    struct image shape; // of the sources
    size_t source_bytes, source_stride, result_stride;
    struct region sources, results;
    struct plan *plan;
    struct shuttle shuttle[FLIGHT_MAX];
    int depth;
};

// `shape`: format and size of the sources; `footage` fills them. Returns 0 or a negative errno.
int flight_open(struct flight *, const struct backend_driver *, struct backend *,
                const struct op_params *, const struct image *shape, const struct footage *,
                int depth);
// True if copies are fast: the cuda backend has pinned the memory.
bool flight_pinned(const struct flight *);
void flight_close(struct flight *); // accepts a zeroed one

// Measures seconds of one frame from submit to done, with nothing else in flight.
int flight_alone(struct flight *, int rounds, double seconds[]);
// Measures seconds per frame over `frames` frames, with `in_flight` (at most depth) at a time.
int flight_steady(struct flight *, int in_flight, int frames, int rounds, double seconds[]);

#endif
