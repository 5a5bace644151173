// Which node runs which camera: a pure function of the cameras, the living nodes and the plan that
// holds. No clock, no network. Two nodes that know the same give the same plan.
#ifndef FRAMED_DAEMON_CLUSTER_PLAN_H
#define FRAMED_DAEMON_CLUSTER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLAN_NAME_SIZE = 64, PLAN_LABELS_MAX = 16, PLAN_SCHEMA = 1, PLAN_GENERATION_MAX = 65535 };
#define PLAN_VERSION_MAX (INT64_C(1) << 62)

struct plan_label {
    char key[32], value[64];
};
struct plan_labels {
    int n;
    struct plan_label list[PLAN_LABELS_MAX];
};

struct plan_camera {
    char name[PLAN_NAME_SIZE];
    double cost; // in cameras of 1920x1080 at 25 pictures a second, as measured last; 0: not known
    double expected;     // the same as its configuration has it, until it is measured; 0: not known
    uint32_t generation; // the newest that it is known to run by, or to have run; 0: none
    const struct plan_labels *on; // that its node must have; NULL: none
    char wish[PLAN_NAME_SIZE];    // the node that `framed cluster move` named; "": none
};

struct plan_node {
    char name[PLAN_NAME_SIZE];
    int64_t incarnation; // its lease: a process that starts anew has another
    int64_t obeys;       // version of the plan that it has carried out; 0: none
    double room;         // cameras of that size that it can take in all
    double taken;        // of `room`, by cameras that the cluster does not place
    bool counts;         // its room is in cameras of any size: each costs 1 there
    struct plan_labels labels;
    bool draining;     // takes no camera, and gives its own away
    int64_t refused_n; // cameras that it cannot run (configuration wrong there):
    char (*refused)[PLAN_NAME_SIZE];
};

struct plan_entry {
    char camera[PLAN_NAME_SIZE];
    char node[PLAN_NAME_SIZE]; // "": unplaced
    int64_t bound;             // the incarnation of the node that it was given to; unplaced: 0
    uint32_t generation; // rises each time that the camera gets a node: 1 to 65535, and then 1
                         // again; epochs are compared as serial numbers; 0: never had a node
    double cost;         // that was measured last; 0: never
};

struct plan {
    int schema;
    int64_t version; // rises with each change
    // The highest generation of the cameras that left the plan: new ones begin above, so that the
    // epochs of a camera that is removed and added again rise.
    uint32_t removed;
    int n;
    struct plan_entry *entries; // by the cameras' names
};

struct plan_wishes {
    bool rebalance; // whether one camera may be moved to balance nodes, now
};

// The next plan. Cameras stay where they are while their node lives, labels still fit, it did not
// refuse them and nobody wishes otherwise, even where the node is too full: running cameras are
// never harmed. A camera without a node goes to the node that it wishes, else to the one that is
// the least full after it (as a share of its room), of those that are not draining and whose labels
// fit; at most 90 % of a node's room is used; where none has room it is unplaced (node ""). Cameras
// are placed in the order of their cost, the largest first, then by name, so that small ones fill
// what is left. A camera of which no cost is known counts as the old plan has it, or else as 1; the
// plan remembers costs, but one that changed is no reason for a new plan. A camera that wishes
// another node moves there once that has room. A camera of a draining node moves only to a node
// that has room; else it stays. With `rebalance`, where nothing else moves, at most one camera
// does: from the fullest node to the emptiest, where the first is 20 points fuller, and afterwards
// at most 10 points emptier than the other; never against a wish. Generations rise by 1 for each
// camera that gets another node or another incarnation of its node: `bound` of the entry differs
// from the node's incarnation. Where a camera is known to run by a newer generation than the old
// plan gives, or that plan is lost, it rises from that. `old` NULL: there was none. 0: *ret is a
// new plan (version old + 1, or above all that nodes obey), for plan_free; 1: `old` stands as it
// is; -ENOMEM; -EPROTONOSUPPORT: `old` is of a newer schema. No two cameras have the same name, and
// no two nodes.
int plan_next(struct plan **ret, const struct plan *old, const struct plan_camera[], int n_cameras,
              const struct plan_node[], int n_nodes, const struct plan_wishes *);
void plan_free(struct plan *);                                               // accepts NULL
const struct plan_entry *plan_find(const struct plan *, const char *camera); // NULL: not in it
// Whether generation `a` came after `b`, of which 0 is before all.
bool plan_is_newer(uint32_t a, uint32_t b);
// `wanted` NULL: none.
bool plan_labels_fit(const struct plan_labels *of_node, const struct plan_labels *wanted);

// JSON, as it stands in etcd (plan_json.c); unknown keys of the same schema are ignored:
//   {"schema":1,"version":7,"removed":0,
//    "cameras":{"gate":{"node":"box1","bound":5210,"generation":3,"cost":1.5}}}
char *plan_print(const struct plan *); // to be freed; NULL: no memory
// 0; -EBADMSG, -EPROTONOSUPPORT (a newer schema), -ENOMEM.
int plan_parse(struct plan **ret, const char *json, size_t length);

#endif
