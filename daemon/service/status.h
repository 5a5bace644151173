// The daemon's present state as JSON, for `framed status --json` and HTTP. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_STATUS_H
#define FRAMED_DAEMON_SERVICE_STATUS_H

#include <stdbool.h>

#include "daemon/service/bottleneck.h"
#include "daemon/service/http.h"
#include "daemon/service/metrics.h"

struct json_t;

enum { STATUS_SCHEMA_VERSION = 1 }; // incremented when a member changes its meaning

struct status {
    int64_t started_ns; // CLOCK_MONOTONIC
    struct load load;
    unsigned samples;
};

void status_open(struct status *);
// Must be called every LOAD_SAMPLE_MS, for rates and quantiles.
void status_sample(struct status *, const struct metrics *);
// Returns the status on one line, for free(); NULL: out of memory.
char *status_text(const struct status *, const struct metrics *);
// The same with only its list of cameras.
char *status_cameras_text(const struct metrics *);

// The data of the page's wall: a line for each camera, and the daemon's figures above them.
// Requested every second, so it must cost the loop little with many cameras.
//
// Returns one line of JSON, for free(); NULL: out of memory. The names are the same as in the
// status; absent values are left out:
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

// --- status_camera.c: the parts about cameras, batches, results and analyses

// `turn`: moves the windows of the quantiles.
void status_camera_sample(struct camera *, int64_t now_ns, bool turn);
void status_results_sample(const struct metrics *, bool turn);

// Converts foreign text: if it is not UTF-8, '?' replaces all bytes outside ASCII. NULL: no memory.
struct json_t *status_string(const char *);
struct json_t *status_string_or_null(const char *);                 // null for ""
struct json_t *status_sink_json(const struct outlet *);             // its address, or null
struct json_t *status_camera_json(struct camera *, int64_t now_ns); // NULL: out of memory
// For a batch. NULL: out of memory.
struct json_t *status_batch_json(const struct outlet *, int64_t now_ns);
// Returns a list of the last analysed picture of each camera, complete as in lines of `kernel:
// stats`, for free(); NULL: out of memory.
char *status_scenes_text(const struct metrics *);

// --- status_cluster.c: this box's view of its cluster, and the place of a camera

// This box in its cluster, with counts of nodes and cameras; NULL: no cluster, or out of memory.
struct json_t *status_cluster_json(const struct metrics *);
// Returns nodes and cameras, for free(): "{}" in no cluster. NULL: out of memory.
char *status_cluster_text(const struct metrics *);
// The pattern's `*` is the camera's name. 200 with its node and outputs if this box shows it, 307
// to the box that does, 404, or 503 while no box does or etcd has not been reached.
void status_cluster_where(const struct metrics *, struct http_exchange *);

#endif
