// The parsed keys of a site: its nodes, cameras and plan, as input for the next plan.
#ifndef FRAMED_DAEMON_CLUSTER_SITE_H
#define FRAMED_DAEMON_CLUSTER_SITE_H

#include "daemon/cluster/documents.h"
#include "daemon/cluster/mirror.h"

enum site_kind { SITE_NODE, SITE_CAMERA, SITE_PLAN };

// A parsed key. Sites that are read one after another share it until the key changes.
struct site_key {
    int uses;         // sites that have it
    uint64_t serial;  // of the mirror's entry
    int64_t revision; // of the store, when the key was written
    int rc;           // 0, or the parser's error; then the data is empty
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
    struct plan_node *nodes; // sorted by name, parallel to node_keys
    struct site_key **node_keys;
    int n_nodes;
    struct plan_camera *cameras; // sorted by name, parallel to camera_keys
    struct site_key **camera_keys;
    int n_cameras;
    struct site_trouble *troubles; // by the cameras' names
    int n_troubles;
    struct site_key *plan_key; // NULL: there is none
    const struct plan *plan;   // NULL: there is none, or it is unreadable (plan_rc)
    int plan_rc;               // 0, or plan_parse's error
    uint64_t placement;        // rises when the plan or a camera's key changes; from 1 on
};

// Reads a mirror. Keys that are unchanged since `before`, which may be zeroed, are shared with it,
// and known costs and generations of cameras are kept. A node with an unreadable key lives, has no
// room and obeys no plan; a camera with an unreadable key stays where it is. Returns 0 or -ENOMEM.
int site_read(struct site *ret, const struct mirror *, const struct site *before);
// Must be called by the thread that reads sites. Other threads may look at a site meanwhile, but
// not at this one. Accepts a zeroed one.
void site_clear(struct site *);
// Each returns NULL if there is none.
const struct plan_node *site_node(const struct site *, const char *name);
const struct node_document *site_document(const struct site *, const char *name);
const struct plan_camera *site_camera(const struct site *, const char *name);
const struct site_key *site_camera_key(const struct site *, const char *name);
// Returns why a node refused the camera, or an empty document.
const struct trouble_document *site_trouble(const struct site *, const char *camera);
// Each returns true if the node, or every node, has carried out the plan, or there is none.
bool site_node_obeys(const struct site *, const struct node_document *);
bool site_obeys(const struct site *);

#endif
