// The parts of the status about results that clients of rings sent back. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_STATUS_RESULTS_H
#define FRAMED_DAEMON_SERVICE_STATUS_RESULTS_H

#include <stdbool.h>

#include "daemon/service/metrics.h"

// `turn`: moves the window of the quantiles.
void status_results_sample(const struct metrics *, bool turn);

struct json_t;
// Null for an output that counts no results. NULL: out of memory.
struct json_t *status_results_json(const struct output *, int64_t now_ns);

// Returns counts of lines: offered, delivered, lost. NULL: out of memory.
struct json_t *status_account_json(const struct line_account *);

#endif
