// What the nodes and cameras of a cluster do, for people and for programs.
#ifndef FRAMED_DAEMON_CLI_CLUSTER_VIEW_H
#define FRAMED_DAEMON_CLI_CLUSTER_VIEW_H

#include "daemon/cli/cluster_store.h"

// Each returns an enum exit_code.
int cluster_status(struct cluster_store *, bool json);
// Prints the camera's node and its address; EXIT_RUNTIME where it has none, with the reason.
int cluster_where(struct cluster_store *, const char *name, bool json);

#endif
