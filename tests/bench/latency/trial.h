// One reader at one camera for some seconds: how long after the last packet of each picture was
// sent the reader had it, and how long after the connection the first one. One thread.
#ifndef FRAMED_TESTS_BENCH_LATENCY_TRIAL_H
#define FRAMED_TESTS_BENCH_LATENCY_TRIAL_H

#include "tests/bench/latency/reader.h"
#include "tests/bench/rtsp_server.h"

enum { TRIAL_SAMPLES_MAX = 100000 };

struct trial {
    double *ms; // n, sent to read; a later trial of the same kind adds to them
    size_t n;
    double first_ms; // of this trial: from the connection's accept to the first picture's read
    int first;       // that picture's number
    // All trials: pictures whose number was not to be read or that were read before they were sent,
    // and pictures between the first and the last that did not come.
    int unknown, missing;
};

// The camera, and for how long it is read.
struct trial_plan {
    const struct rtsp_server *server;
    int pictures;     // of the clip
    double warm_up_s; // behind the first picture, of which nothing counts
    double seconds;   // which do
};

// 0; -EINTR; or negative errno after a line on stderr.
int trial_run(struct trial *, const struct reader_kind *, const struct reader_want *,
              const struct trial_plan *);

#endif
