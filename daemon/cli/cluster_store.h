// The contents of etcd for a cluster, for the commands of `framed cluster`. Errors are printed
// where they happen; without memory the process ends.
#ifndef FRAMED_DAEMON_CLI_CLUSTER_STORE_H
#define FRAMED_DAEMON_CLI_CLUSTER_STORE_H

#include "daemon/cluster/site.h"

struct cluster_store {
    char name[PLAN_NAME_SIZE]; // of the site
    struct etcd *etcd;
    struct mirror mirror; // of the last read, unparsed, and then parsed:
    struct site site;
};

// Takes etcd's address from the configuration file. Returns EXIT_OK, to be followed by
// cluster_store_close, or another exit code.
int cluster_store_open(struct cluster_store *, const char *config);
void cluster_store_close(struct cluster_store *);
int cluster_store_read(struct cluster_store *); // returns EXIT_OK or EXIT_RUNTIME
// Returns true if the operator had the node drained. The node may be gone.
bool cluster_store_drains(const struct cluster_store *, const char *node);

// --- changes
// Each prints its changes and returns an enum exit_code. cluster_apply makes the cluster's cameras
// those in the file; `prune`: removes all others.
int cluster_apply(struct cluster_store *, const char *file, bool prune);
// Adds the cameras of the files. The cluster must have none of them.
int cluster_add(struct cluster_store *, const char *const files[], int n);
int cluster_remove(struct cluster_store *, const char *const names[], int n);
int cluster_move(struct cluster_store *, const char *name, const char *node);
int cluster_drain(struct cluster_store *, const char *node, bool drain);

#endif
