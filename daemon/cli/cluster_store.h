// What etcd holds of a cluster, for the commands of `framed cluster`. Errors are printed where they
// happen; without memory the process ends.
#ifndef FRAMED_DAEMON_CLI_CLUSTER_STORE_H
#define FRAMED_DAEMON_CLI_CLUSTER_STORE_H

#include "daemon/cluster/site.h"

enum { STORE_KEY_SIZE = 192 };

struct cluster_store {
    char name[PLAN_NAME_SIZE]; // of the site
    struct etcd *etcd;
    struct mirror mirror; // as of the last read, as is:
    struct site site;
};

// Takes etcd's address from the configuration file. EXIT_OK, for cluster_store_close, or another
// exit code.
int cluster_store_open(struct cluster_store *, const char *config);
void cluster_store_close(struct cluster_store *);
int cluster_store_read(struct cluster_store *); // EXIT_OK, or EXIT_RUNTIME
// Writes all, or nothing where a comparison does not hold: *succeeded. EXIT_OK or EXIT_RUNTIME.
int cluster_store_write(struct cluster_store *, const struct etcd_compare[], int n_compares,
                        const struct etcd_write[], int n_writes, bool *succeeded);

// "/framed/SITE/KIND/NAME" in `to`, which is returned.
char *cluster_store_key(const struct cluster_store *, const char *kind, const char *name,
                        char to[STORE_KEY_SIZE]);
// Whether the operator had the node drained, which may be gone.
bool cluster_store_drains(const struct cluster_store *, const char *node);

#endif
