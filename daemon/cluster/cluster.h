// Runs the cluster's cameras on this node: carries out a member's orders (member.h) by changes of
// the configuration in memory alone (supervisor/edit.h), and reports the running cameras. Never
// touches cameras of the files. Loop thread only.
#ifndef FRAMED_DAEMON_CLUSTER_CLUSTER_H
#define FRAMED_DAEMON_CLUSTER_CLUSTER_H

#include "daemon/cluster/member.h"
#include "daemon/supervisor/reload.h"

struct cluster;

struct cluster_context {
    const struct config *config; // as framed started, with a cluster; outlives the cluster
    uv_loop_t *loop;
    struct event_queue *events;
    struct reload *reload;
    struct cameras *cameras;
    int (*more)(void *opaque); // further cameras like the running ones that fit here; -1: unknown
    void *opaque;
};

// Begins to join, without a time limit. Returns 0 or a negative errno.
int cluster_open(struct cluster **ret, const struct cluster_context *);
// Carries out no more orders; other nodes take the cameras at once. Accepts NULL.
void cluster_stop(struct cluster *);
void cluster_close_handles(struct cluster *);          // after cluster_stop; accepts NULL
void cluster_close(struct cluster *);                  // after the loop; accepts NULL
struct member *cluster_member(const struct cluster *); // NULL if `cluster` is NULL

#endif
