// This box's view of its cluster as JSON, and the place of a camera. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_STATUS_CLUSTER_H
#define FRAMED_DAEMON_SERVICE_STATUS_CLUSTER_H

#include "daemon/service/http.h"
#include "daemon/service/metrics.h"

struct json_t;
// This box in its cluster, with counts of nodes and cameras; NULL: no cluster, or out of memory.
struct json_t *status_cluster_json(const struct metrics *);
// Returns nodes and cameras, for free(): "{}" in no cluster. NULL: out of memory.
char *status_cluster_text(const struct metrics *);
// The pattern's `*` is the camera's name. 200 with its node and outputs if this box shows it, 307
// to the box that does, 404, or 503 while no box does or etcd has not been reached.
void status_cluster_where(const struct metrics *, struct http_exchange *);

#endif
