// The cluster's cameras on this box: carries out a member's orders (member.h) by changes of the
// configuration that stand in memory alone (supervisor/edit.h), and reports what runs. Cameras of
// the files are never touched. Loop thread only.
#ifndef FRAMED_DAEMON_CLUSTER_CLUSTER_H
#define FRAMED_DAEMON_CLUSTER_CLUSTER_H

#include "daemon/cluster/member.h"
#include "daemon/supervisor/reload.h"

struct cluster;

struct cluster_context {
    const struct config *config; // framed's at its start, which has a cluster; outlives it
    uv_loop_t *loop;
    struct event_queue *events;
    struct reload *reload;
    struct cameras *cameras;
    int (*more)(void *opaque); // cameras like those that run that this box can take; -1: not known
    void *opaque;
};

// Joins, which takes as long as it takes. 0 or negative errno.
int cluster_open(struct cluster **ret, const struct cluster_context *);
// Other boxes take the cameras at once; no more orders are carried out. Accepts NULL.
void cluster_stop(struct cluster *);
void cluster_close_handles(struct cluster *);          // after cluster_stop; accepts NULL
void cluster_close(struct cluster *);                  // after the loop; accepts NULL
struct member *cluster_member(const struct cluster *); // NULL: `cluster` is NULL

#endif
