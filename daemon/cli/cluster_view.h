// Prints the state of a cluster's nodes and cameras, for people and for programs.
#ifndef FRAMED_DAEMON_CLI_CLUSTER_VIEW_H
#define FRAMED_DAEMON_CLI_CLUSTER_VIEW_H

#include "daemon/cli/cluster_store.h"

// Each returns an enum exit_code.
int cluster_status(struct cluster_store *, bool json);
// Prints the camera's node and its address. EXIT_RUNTIME, with the reason printed: it has none.
int cluster_where(struct cluster_store *, const char *name, bool json);

#endif
