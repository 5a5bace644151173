// Writes a site's next plan when it is this node's turn. Used by the member's thread alone.
#ifndef FRAMED_DAEMON_CLUSTER_PLANNER_H
#define FRAMED_DAEMON_CLUSTER_PLANNER_H

#include "daemon/cluster/site.h"

// The caller sets the public members and zeroes the private ones.
struct planner {
    struct etcd *etcd;
    const struct mirror *mirror;
    const struct site *site; // of the mirror
    const char *own;         // this node's name
    int64_t timeout_ns;
    // Reports a written plan (rc 0) or a failure; -EAGAIN: another node was first. Within etcd_run.
    void (*written)(void *opaque, int rc);
    void *opaque;
    // Private:
    int64_t turn_ns;           // when a due plan may be written; 0: none is due
    int64_t joined_ns;         // when this node joined; 0: no need to wait for other nodes
    int64_t nodes_ns, move_ns; // when the set of nodes changed; when a camera was rebalanced
    uint64_t nodes;            // a hash of that set
    int n_nodes;               // of that set
    int64_t plan_ns, version;  // when the plan came, and its version
    int64_t replaced;          // revision of the plan that the last write was to replace
    int64_t retry_ns;          // until then its replacement is not written again
    bool gathers;              // another plan is due, and waits until nodes obey the current one
    bool planned;              // the site in its present state needs no other plan,
    bool balanced;             // nor, to balance nodes, the move of a camera
    bool writing;
};

void planner_join(struct planner *); // call after a join with a new lease
// Must be called after each reading of the site.
void planner_note_nodes(struct planner *);
// Writes a plan that is due, or notes when. Returns 0; -EBADMSG: the current plan is unreadable;
// -EPROTONOSUPPORT: it is a newer framed's (both leave it unchanged); or -ENOMEM.
int planner_advance(struct planner *);
// Returns when planner_advance has more to do, without a change; 0: never.
int64_t planner_due_ns(const struct planner *);

#endif
