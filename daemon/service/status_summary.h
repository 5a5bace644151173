// What the wall of the page shows: of each camera a line, of the daemon the figures above them. It
// is asked for each second, so that of many cameras it must cost the loop little. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_STATUS_SUMMARY_H
#define FRAMED_DAEMON_SERVICE_STATUS_SUMMARY_H

#include "daemon/service/metrics.h"

// On one line of JSON that the caller frees; NULL: out of memory. Of a camera, names are those of
// the status; what there is nothing to say of is left out:
//
//     {"name":"gate","state":"running","fps_in":25.0,"fps_out":25.0,"p99_s":0.0123,"damaged":0,
//     "stream":"h264 1920x1080 25 fps over rtsp/tcp","max_age_s":0.5,"next_try_s":4.2,
//     "alerts":["frozen"],"error":"...","output_error":"..."}
//
//     fps_out       of the output with most
//     p99_s         of the output with the longest
//     max_age_s     of the output with the least
//     error         why it does not run
//     output_error  of the last minute
char *status_summary_text(const struct status *, const struct metrics *);

#endif
