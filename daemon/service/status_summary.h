// The data of the page's wall: a line for each camera, and the daemon's figures above them.
// Requested every second, so it must cost the loop little with many cameras. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_STATUS_SUMMARY_H
#define FRAMED_DAEMON_SERVICE_STATUS_SUMMARY_H

#include "daemon/service/metrics.h"

// Returns one line of JSON, for free(); NULL: out of memory. The names are the same as
// in the status; absent values are left out:
//
//     {"name":"gate","state":"running","fps_in":25.0,"fps_out":25.0,"p99_s":0.0123,"damaged":0,
//     "stream":"h264 1920x1080 25 fps over rtsp/tcp","max_age_s":0.5,"next_try_s":4.2,
//     "alerts":["frozen"],"error":"...","output_error":"..."}
//
//     fps_out       highest of its outputs
//     p99_s         longest of its outputs
//     max_age_s     lowest of its outputs
//     error         why it does not run
//     output_error  from the last minute
char *status_summary_text(const struct status *, const struct metrics *);

#endif
