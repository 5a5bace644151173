// What the keys of a site say: its nodes, cameras and plan, as the plan's computation takes them.
#ifndef FRAMED_DAEMON_CLUSTER_SITE_H
#define FRAMED_DAEMON_CLUSTER_SITE_H

#include "daemon/cluster/documents.h"
#include "daemon/cluster/mirror.h"

struct site {
    struct plan_node *nodes; // by their names, as is:
    struct node_document *documents;
    int n_nodes;
    struct plan_camera *cameras;
    const struct mirror_entry **texts; // of the cameras
    int n_cameras;
    struct plan *plan; // NULL: there is none, or it cannot be read:
    int plan_rc;       // 0, or as plan_parse says
};

// Of a mirror, which stays as it is while the site is used. A node whose key cannot be read lives,
// has no room and obeys no plan; a camera whose key cannot be read stays where it is. 0 or
// -ENOMEM.
int site_read(struct site *ret, const struct mirror *);
void site_clear(struct site *); // accepts a zeroed one
// NULL: there is none.
const struct plan_node *site_node(const struct site *, const char *name);
const struct node_document *site_document(const struct site *, const char *name);
// Of the camera's key; NULL: there is none.
const struct mirror_entry *site_text(const struct site *, const char *camera);
// Whether every node has carried out the plan.
bool site_obeys(const struct site *);

#endif
