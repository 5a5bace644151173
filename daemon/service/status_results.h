// The parts of the status that are of results which clients of rings sent back. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_STATUS_RESULTS_H
#define FRAMED_DAEMON_SERVICE_STATUS_RESULTS_H

#include <stdbool.h>

#include "daemon/service/metrics.h"

// `turn`: the window that quantiles are of moves on.
void status_results_sample(const struct metrics *, bool turn);

struct json_t;
// Null of an output that wants no results. NULL: out of memory.
struct json_t *status_results_json(const struct output *, int64_t now_ns);

// What has become of lines. NULL: out of memory.
struct json_t *status_account_json(const struct line_account *);

#endif
