// A daemon under test: `framed run` as a child on a testbed's configuration, this process the
// consumer of all its rings.
#ifndef FRAMED_TESTS_BENCH_SESSION_H
#define FRAMED_TESTS_BENCH_SESSION_H

#include "tests/bench/bench.h"
#include "tests/bench/child.h"
#include "tests/bench/consumer.h"
#include "tests/bench/testbed.h"

struct session {
    struct bench *bench;
    struct testbed testbed;
    struct clip_units clip;     // of the server
    struct rtsp_server *server; // of the cameras over RTSP; NULL: they are files
    struct child child;
    struct consumer *consumer;
    struct expected expected; // of every camera
    int64_t start_ns;
    size_t device_before; // bytes of the device's memory in use
    double up_s;          // until the last camera's first frame was seen
};

struct window { // of some seconds of a session
    struct consumed consumed;
    double seconds, cores, resident, device; // bytes
    // Since the session began: what the server sent, and the packets that the daemon says it
    // missed; NAN: it counts none.
    struct rtsp_counts sent;
    double missed;
};

// Starts, and waits until every camera but the joining ones has delivered. 0, or negative errno
// after a note in the report.
int session_open(struct session *, struct bench *, const struct testbed_options *);
void session_close(struct session *); // accepts a zeroed one
// Measures for `seconds`, of the cameras that do not join.
int session_window(struct session *, double seconds, struct window *ret);
// A window in which the joining cameras find their clip, all at once, and that lasts until they
// have delivered: the daemon itself spreads them, by its back-off and as it starts them.
int session_join(struct session *, struct window *ret, double *joined_s);

// Adds the last words of a child's log to the report.
void session_complain(struct bench *, const char *what, const char *log);

#endif
