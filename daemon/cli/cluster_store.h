// The contents of etcd for a cluster, for the commands of `framed cluster`. Errors are printed
// where they happen; without memory the process ends.
#ifndef FRAMED_DAEMON_CLI_CLUSTER_STORE_H
#define FRAMED_DAEMON_CLI_CLUSTER_STORE_H

#include "daemon/cluster/site.h"

enum { STORE_KEY_SIZE = 192 };

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
// Writes all, or nothing if a comparison fails: *succeeded. Returns EXIT_OK or EXIT_RUNTIME.
int cluster_store_write(struct cluster_store *, const struct etcd_compare[], int n_compares,
                        const struct etcd_write[], int n_writes, bool *succeeded);

// Writes "/framed/SITE/KIND/NAME" to `to` and returns it.
char *cluster_store_key(const struct cluster_store *, const char *kind, const char *name,
                        char to[STORE_KEY_SIZE]);
// Returns true if the operator had the node drained. The node may be gone.
bool cluster_store_drains(const struct cluster_store *, const char *node);

#endif
