// The wall clock of an RTSP camera's packets, from its sender reports. One thread uses a clock;
// ready when zeroed.
#ifndef FRAMED_DAEMON_INPUT_SENDER_CLOCK_H
#define FRAMED_DAEMON_INPUT_SENDER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct sender_clock {
    bool seen;    // a report has come
    bool is_next; // the time that comes with a packet belongs to the next one
    bool has_next;
    int64_t next_ns;
};

// Call for each packet in turn. `report_ns`: the time since 1970 that came with it (INT64_MIN:
// none); `start_ns`: the time of pts 0 by the first report. Returns the packet's own time since
// 1970; INT64_MIN before the first report.
int64_t sender_clock_read(struct sender_clock *, int64_t report_ns, int64_t start_ns,
                          int64_t pts_ns);

#endif
