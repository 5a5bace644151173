// What the keys of a site say: its nodes, cameras and plan, as the plan's computation takes them.
#ifndef FRAMED_DAEMON_CLUSTER_SITE_H
#define FRAMED_DAEMON_CLUSTER_SITE_H

#include "daemon/cluster/documents.h"
#include "daemon/cluster/mirror.h"

enum site_kind { SITE_NODE, SITE_CAMERA, SITE_PLAN };

// What a key says. Sites that are read one after another share it until the key changes.
struct site_key {
    int uses;         // sites that have it
    uint64_t serial;  // of the mirror's entry
    int64_t revision; // of the store, when the key was written
    int rc;           // 0, or as its parsing says; then it says nothing
    enum site_kind kind;
    union {
        struct node_document node;
        struct camera_document camera;
        struct plan *plan;
    };
};

struct site_trouble {
    char camera[PLAN_NAME_SIZE];
    struct trouble_document document;
};

struct site {
    struct plan_node *nodes; // by their names, as is:
    struct site_key **node_keys;
    int n_nodes;
    struct plan_camera *cameras; // by their names, as is:
    struct site_key **camera_keys;
    int n_cameras;
    struct site_trouble *troubles; // by the cameras' names
    int n_troubles;
    struct site_key *plan_key; // NULL: there is none
    const struct plan *plan;   // NULL: there is none, or it cannot be read:
    int plan_rc;               // 0, or as plan_parse says
    uint64_t placement;        // rises when the plan or a camera's key has changed; from 1 on
};

// Of a mirror. What has not changed since `before` was read is shared with that, which may be
// zeroed; and what was known of a camera's cost and generation goes on to be. A node whose key
// cannot be read lives, has no room and obeys no plan; a camera whose key cannot be read stays
// where it is. 0 or -ENOMEM.
int site_read(struct site *ret, const struct mirror *, const struct site *before);
// By the thread that reads sites: others may look at one meanwhile, but at none that is cleared.
// Accepts a zeroed one.
void site_clear(struct site *);
// NULL: there is none.
const struct plan_node *site_node(const struct site *, const char *name);
const struct node_document *site_document(const struct site *, const char *name);
const struct plan_camera *site_camera(const struct site *, const char *name);
const struct site_key *site_camera_key(const struct site *, const char *name);
// Why a node refused the camera, or empty.
const struct trouble_document *site_trouble(const struct site *, const char *camera);
// Whether a node, or every node, has carried out the plan, if there is one.
bool site_node_obeys(const struct site *, const struct node_document *);
bool site_obeys(const struct site *);

#endif
