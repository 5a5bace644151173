// What cameras and their outputs did in the last ten minutes, for charts. Names of cameras and
// outputs are what a history is kept by, so that it goes on over reloads. About 23 kB an output and
// 9 kB a camera. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_HISTORY_H
#define FRAMED_DAEMON_SERVICE_HISTORY_H

#include "daemon/service/metrics.h"

enum { HISTORY_SAMPLES = 300, HISTORY_INTERVAL_MS = 2000 };

struct history;

int history_open(struct history **ret); // 0 or -ENOMEM
void history_close(struct history *);   // accepts NULL
// To be called every HISTORY_INTERVAL_MS. Forgets cameras and outputs that are not there any more;
// where memory is short, new cameras and outputs are left out until the next call.
void history_sample(struct history *, const struct metrics *, int64_t now_ns);

// Which part is wanted. Of all cameras many samples are much text: who asks again and again asks
// for those that have come since, or for losses alone, of which there are few.
struct history_wanted {
    const char *camera; // NULL: all
    int samples;        // the newest, at most HISTORY_SAMPLES and as many as there are
    uint64_t since;     // and of these those that are newer than the one of this number
    bool lost_only;     // of outputs what was lost, and nothing else
};

// On one line of JSON that the caller frees:
//
//     {"interval_ms":2000,"newest":880000061,"newest_ms":1760000000123,"samples":2,"cameras":{
//     "gate":{"in":[50,50],"decoded":[50,49],"damaged":[0,1],"reconnects":[0,0],"outputs":{
//     "detector":{"out":[50,48],"lost":{"client":[0,1]},"latency":{"decode":[8.1,8.2],
//     "process":[2.5,2.4]},"p99":[14.2,15]}}}}}
//
// `newest` is the newest sample's number. Numbers rise by one, and go on above those of the daemon
// that ran before: samples that begin above `since` + 1 follow a gap.
//
// Lists are of equal length, the oldest sample first, and count pictures and connections of an
// interval. Reasons for which nothing was lost are left out. Latencies are in ms and of the last
// two intervals: the medians of both stages, and from the arrival of a packet to the finished frame
// what 99 % stayed within. Null: there was no such frame, or the camera or output was not there.
// `newest_ms` is when the newest sample was taken, in ms since 1970. NULL: out of memory.
char *history_text(const struct history *, const struct history_wanted *, int64_t now_ns);

#endif
