// One reader at one camera for some seconds: the time from each picture's last packet until the
// reader had it, and from the connection to the first picture. One thread.
#ifndef FRAMED_TESTS_BENCH_LATENCY_TRIAL_H
#define FRAMED_TESTS_BENCH_LATENCY_TRIAL_H

#include "tests/bench/latency/reader.h"
#include "tests/bench/rtsp_server.h"

enum { TRIAL_SAMPLES_MAX = 100000 };

struct trial {
    double *ms; // n samples, sent to read; later trials of the same kind append
    size_t n;
    double first_ms; // this trial: from the connection's accept until the first picture was read
    int first;       // number of that picture
    // Sums over all trials: pictures with an unreadable number or a time before their sending, and
    // pictures missing between the first and the last.
    int unknown, missing;
};

// The camera, and how long to read it.
struct trial_plan {
    const struct rtsp_server *server;
    int pictures;     // of the clip
    double warm_up_s; // after the first picture, not measured
    double seconds;   // measured time after the warm-up
};

// Returns 0, -EINTR, or a negative errno after a line on stderr.
int trial_run(struct trial *, const struct reader_kind *, const struct reader_want *,
              const struct trial_plan *);

#endif
