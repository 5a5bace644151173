// A daemon under test: `framed run` as a child with a testbed's configuration; this process
// consumes all its rings.
#ifndef FRAMED_TESTS_BENCH_SESSION_H
#define FRAMED_TESTS_BENCH_SESSION_H

#include "tests/bench/bench.h"
#include "tests/bench/child.h"
#include "tests/bench/consumer.h"
#include "tests/bench/testbed.h"

struct session {
    struct bench *bench;
    struct testbed testbed;
    struct clip_units clip;     // for the server
    struct rtsp_server *server; // for cameras over RTSP; NULL: the cameras are files
    struct child child;
    struct consumer *consumer;
    struct expected expected; // same for every camera
    int64_t start_ns;
    size_t device_before; // device memory in use, bytes
    double up_s;          // until the last camera's first frame arrived
};

struct window { // some seconds of a session
    struct consumed consumed;
    double seconds, cores, resident, device; // resident, device: bytes
    // Since the session began: the server's totals, and the packets the daemon counted as missed;
    // NAN: it counts none.
    struct rtsp_counts sent;
    double missed;
};

// Starts the daemon and waits until every camera except the joining ones has delivered. Returns 0,
// or a negative errno after a note in the report.
int session_open(struct session *, struct bench *, const struct testbed_options *);
void session_close(struct session *); // accepts a zeroed one
// Measures the cameras that do not join for `seconds`.
int session_window(struct session *, double seconds, struct window *ret);
// A window that starts when the clips of all joining cameras appear at once, and lasts until these
// have delivered: the daemon spreads them by its back-off and its start order.
int session_join(struct session *, struct window *ret, double *joined_s);

// Adds the last line of a child's log to the report.
void session_complain(struct bench *, const char *what, const char *log);

#endif
