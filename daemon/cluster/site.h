// The keys of a site: as etcd has them, and parsed as input for the next plan: its nodes, cameras
// and plan.
#ifndef FRAMED_DAEMON_CLUSTER_SITE_H
#define FRAMED_DAEMON_CLUSTER_SITE_H

#include "daemon/cluster/documents.h"
#include "daemon/cluster/etcd.h"

// --- the mirror (mirror.c): a copy of the site's keys, from etcd's answers and its watch
struct mirror_entry {
    char *key, *value; // the key without the prefix
    size_t length;
    int64_t mod_revision;
    uint64_t serial; // different for each received value
};

struct mirror {
    char *prefix;              // "/framed/yard/"
    struct mirror_entry *list; // in the order of the keys' bytes
    int n, room;
    int64_t revision; // of the store, up to which all changes are applied
    uint64_t serial;  // of the last received entry
};

int mirror_open(struct mirror *, const char *prefix); // 0 or -ENOMEM
void mirror_close(struct mirror *);                   // accepts a zeroed one
// Replaces all keys by those in the answer, at its revision. Returns 0 or -ENOMEM.
int mirror_set(struct mirror *, const struct etcd_answer *);
// Applies the changes of a watch. Returns 0 or -ENOMEM.
int mirror_change(struct mirror *, const struct etcd_answer *);
int64_t mirror_newest(const struct mirror *); // revision of the last written key; 0: none
// Returns true if the mirror has all of etcd's keys, by the answer of etcd_get_changes since
// mirror_newest. The newest key must be unchanged, too: a store restored from a backup lacks it.
bool mirror_is_whole(const struct mirror *, const struct etcd_answer *);
// Returns NULL if there is none.
const struct mirror_entry *mirror_find(const struct mirror *, const char *key);
// Returns the first key that begins with "camera/" or the like, and sets *n to their number.
const struct mirror_entry *mirror_folder(const struct mirror *, const char *folder, int *n);

// --- the site
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

// --- the state of nodes and cameras in words for people
// It is the same in `framed cluster status`, HTTP and the page.
enum { SITE_WHY_SIZE = DOCUMENT_WHY_SIZE + PLAN_NAME_SIZE + 32 };

struct site_camera_state {
    // running, starting (its node has not opened it yet, waits for other nodes, or refused it),
    // waiting (its node is gone), unplaced (no node may or can run it) or unreadable (a newer
    // framed wrote it)
    const char *word;
    char why[SITE_WHY_SIZE];        // without passwords; "": no reason
    const char *node;               // valid as long as the site; "": none
    const struct node_document *at; // that node's; NULL: it does not live
    uint32_t generation;
};
struct site_camera_state site_camera_state(const struct site *, const struct plan_camera *);

// Each for a node of the site:
bool site_node_readable(const struct node_document *);   // else a newer framed wrote it
double site_node_used(const struct node_document *);     // room used by all of its cameras
int site_planned(const struct site *, const char *node); // cameras that the plan gives it

// Counts of cameras.
struct site_counts {
    int elsewhere; // running on other nodes
    int troubled;  // not running
};
struct site_counts site_counts(const struct site *, const char *own_node);

#endif
