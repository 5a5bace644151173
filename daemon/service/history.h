// Statistics of cameras and their outputs over the last ten minutes, for charts. They are kept by
// the names of cameras and outputs, so that they continue over reloads. About 23 kB for an output
// and 9 kB for a camera. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_HISTORY_H
#define FRAMED_DAEMON_SERVICE_HISTORY_H

#include "daemon/service/metrics.h"

enum { HISTORY_SAMPLES = 300, HISTORY_INTERVAL_MS = 2000 };

struct history;

int history_open(struct history **ret); // 0 or -ENOMEM
void history_close(struct history *);   // accepts NULL
// Must be called every HISTORY_INTERVAL_MS. Drops cameras and outputs that no longer exist; if
// memory is short, skips new cameras and outputs until the next call.
void history_sample(struct history *, const struct metrics *, int64_t now_ns);

// The requested part. Many samples of all cameras are much text: a client that polls requests
// samples since its last ones, or only losses, which are few.
struct history_wanted {
    const char *camera; // NULL: all
    int samples;        // the newest, at most HISTORY_SAMPLES and the existing ones
    uint64_t since;     // only samples newer than this number
    bool lost_only;     // only the losses of outputs
};

// Returns one line of JSON, for free():
//
//     {"interval_ms":2000,"newest":880000061,"newest_ms":1760000000123,"samples":2,"cameras":{
//     "gate":{"in":[50,50],"decoded":[50,49],"damaged":[0,1],"reconnects":[0,0],"outputs":{
//     "detector":{"out":[50,48],"lost":{"client":[0,1]},"latency":{"decode":[8.1,8.2],
//     "process":[2.5,2.4]},"p99":[14.2,15]}}}}}
//
// `newest` is the newest sample's number. Numbers rise by one and continue above the previous
// daemon's: samples that begin above `since` + 1 follow a gap.
//
// Lists have equal length, oldest sample first, and count pictures and connections of an interval.
// Reasons without losses are left out. Latencies are in ms and of the last two intervals: the
// medians of both stages, and the 99th percentile from a packet's arrival to the finished frame.
// null: no such frame, or the camera or output did not exist. `newest_ms` is the time of the newest
// sample, in ms since 1970. Returns NULL if out of memory.
char *history_text(const struct history *, const struct history_wanted *, int64_t now_ns);

#endif
