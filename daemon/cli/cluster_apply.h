// Puts cameras into a cluster, moves them, or removes them.
#ifndef FRAMED_DAEMON_CLI_CLUSTER_APPLY_H
#define FRAMED_DAEMON_CLI_CLUSTER_APPLY_H

#include "daemon/cli/cluster_store.h"

// Each prints its changes and returns an enum exit_code. cluster_apply makes the cluster's cameras
// those in the file; `prune`: removes all others.
int cluster_apply(struct cluster_store *, const char *file, bool prune);
// Adds the cameras of the files. The cluster must have none of them.
int cluster_add(struct cluster_store *, const char *const files[], int n);
int cluster_remove(struct cluster_store *, const char *const names[], int n);
int cluster_move(struct cluster_store *, const char *name, const char *node);
int cluster_drain(struct cluster_store *, const char *node, bool drain);

#endif
