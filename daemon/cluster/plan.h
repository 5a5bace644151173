// Assigns cameras to nodes: a pure function of the cameras, the living nodes and the current plan.
// No clock, no network. Nodes with the same input compute the same plan.
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
    double cost;     // in cameras of 1920x1080 at 25 pictures a second, last measured; 0: unknown
    double expected; // same, from its configuration, until it is measured; 0: unknown
    uint32_t generation;          // the newest that it is known to run or to have run; 0: none
    const struct plan_labels *on; // labels that its node must have; NULL: none
    char wish[PLAN_NAME_SIZE];    // node chosen by `framed cluster move`; "": none
};

struct plan_node {
    char name[PLAN_NAME_SIZE];
    int64_t incarnation; // its lease: a restarted process has another
    int64_t obeys;       // version of the plan that it has carried out; 0: none
    double room;         // its capacity, in cameras of that size
    double taken;        // part of `room`, by cameras that the cluster does not place
    bool counts;         // `room` counts cameras of any size: each costs 1
    struct plan_labels labels;
    bool draining;     // takes no camera, and gives its own away
    int64_t refused_n; // cameras that it cannot run (configuration wrong there):
    char (*refused)[PLAN_NAME_SIZE];
};

struct plan_entry {
    char camera[PLAN_NAME_SIZE];
    char node[PLAN_NAME_SIZE]; // "": unplaced
    int64_t bound;             // incarnation of the node it was given to; unplaced: 0
    uint32_t generation; // rises each time that the camera gets a node: 1 to 65535, and then 1
                         // again; epochs are compared as serial numbers; 0: never had a node
    double cost;         // last measured; 0: never
};

struct plan {
    int schema;
    int64_t version; // rises with each change
    // Highest generation of the cameras that left the plan. New ones begin above it, so that the
    // epochs of a camera that is removed and added again rise.
    uint32_t removed;
    int n;
    struct plan_entry *entries; // by the cameras' names
};

struct plan_wishes {
    bool rebalance; // one camera may be moved now to balance nodes
};

// Computes the next plan. Names of cameras and of nodes must be unique.
// - A camera stays while its node lives, its labels fit, the node did not refuse it and nobody
//   wishes otherwise, even if the node is too full: running cameras are never harmed.
// - A camera without a node goes to the node that it wishes, else to the node that is the least
//   full with it (as a share of its room), is not draining and has its labels. At most 90 % of a
//   node's room is used. A camera that fits nowhere is unplaced (node ""). The costliest are placed
//   first, then by name, so that small ones fill the rest.
// - An unmeasured camera costs as in the old plan, else as expected, else 1. The plan remembers
//   costs, but a changed cost is no reason for a new plan.
// - A camera moves to the node that it wishes, or away from a draining node, once there is room.
// - With `rebalance`, if nothing else moves, at most one camera does: from the fullest node to the
//   emptiest, if the first is 20 points fuller, and is at most 10 points emptier afterwards; never
//   against a wish.
// - A generation rises by 1 for another node, or another incarnation of it than in `bound`; and
//   from the newest known generation if the old plan has an older one, or is lost.
// `old` NULL: there was none. Returns 0 with a new plan for plan_free (version old + 1, or above
// all that nodes obey); 1 if `old` still holds; -ENOMEM; or -EPROTONOSUPPORT: `old` has a newer
// schema.
int plan_next(struct plan **ret, const struct plan *old, const struct plan_camera[], int n_cameras,
              const struct plan_node[], int n_nodes, const struct plan_wishes *);
void plan_free(struct plan *);                                               // accepts NULL
const struct plan_entry *plan_find(const struct plan *, const char *camera); // NULL: not in it
// Returns true if generation `a` came after `b`; 0 is before all.
bool plan_is_newer(uint32_t a, uint32_t b);
// Returns true if the node has all labels in `wanted`; NULL: none.
bool plan_labels_fit(const struct plan_labels *of_node, const struct plan_labels *wanted);

#endif
