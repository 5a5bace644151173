// The daemon's present state as JSON, for `framed status --json` and HTTP. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_STATUS_H
#define FRAMED_DAEMON_SERVICE_STATUS_H

#include <stdbool.h>

#include "daemon/service/bottleneck.h"
#include "daemon/service/metrics.h"
#include "daemon/service/status_camera.h"

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

struct json_t;
// Returns the part about the process; NULL: out of memory.
struct json_t *status_process_json(const struct status *);

#endif
