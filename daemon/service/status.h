// What the daemon does now, as JSON: what `framed status --json` prints and HTTP serves. Loop
// thread.
#ifndef FRAMED_DAEMON_SERVICE_STATUS_H
#define FRAMED_DAEMON_SERVICE_STATUS_H

#include <stdbool.h>

#include "daemon/service/metrics.h"
#include "daemon/service/status_bottleneck.h"
#include "daemon/service/status_camera.h"

enum { STATUS_SCHEMA_VERSION = 1 }; // rises when a member changes its meaning

struct status {
    int64_t started_ns; // CLOCK_MONOTONIC
    struct load load;
    unsigned samples;
};

void status_open(struct status *);
// To be called every STATUS_SAMPLE_MS: rates and quantiles come of it.
void status_sample(struct status *, const struct metrics *);
// The snapshot, on one line that the caller frees; NULL: out of memory.
char *status_text(const struct status *, const struct metrics *);
// Its list of cameras alone.
char *status_cameras_text(const struct metrics *);

struct json_t;
// The daemon's own part; NULL: out of memory.
struct json_t *status_process_json(const struct status *);

#endif
