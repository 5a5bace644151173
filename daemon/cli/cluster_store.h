// What etcd holds of a cluster, for the commands of `framed cluster`. Errors are printed where they
// happen; without memory the process ends.
#ifndef FRAMED_DAEMON_CLI_CLUSTER_STORE_H
#define FRAMED_DAEMON_CLI_CLUSTER_STORE_H

#include "daemon/cluster/documents.h"
#include "daemon/cluster/etcd.h"

enum { STORE_KEY_SIZE = 192 };

struct stored_camera {
    char name[PLAN_NAME_SIZE];
    int64_t mod_revision;
    bool readable; // else of a newer framed, or damaged
    struct camera_document document;
};
struct stored_node {
    char name[PLAN_NAME_SIZE];
    bool readable;
    struct node_document document;
};
struct stored_trouble {
    char camera[PLAN_NAME_SIZE];
    struct trouble_document document;
};

struct cluster_store {
    char site[PLAN_NAME_SIZE];
    struct etcd *etcd;
    // As of the last read, each by name:
    int n_cameras, n_nodes, n_troubles, n_drains;
    struct stored_camera *cameras;
    struct stored_node *nodes;
    struct stored_trouble *troubles;
    char (*drains)[PLAN_NAME_SIZE];
    struct plan *plan; // NULL: none yet, or none that this framed can read
    bool newer_plan;
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
// NULL: there is none.
const struct stored_camera *cluster_store_camera(const struct cluster_store *, const char *name);
const struct stored_node *cluster_store_node(const struct cluster_store *, const char *name);
const struct stored_trouble *cluster_store_trouble(const struct cluster_store *,
                                                   const char *camera);
bool cluster_store_drains(const struct cluster_store *, const char *node);

#endif
