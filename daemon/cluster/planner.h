// Writes a site's next plan where that is this box's turn. Used by the member's thread alone.
#ifndef FRAMED_DAEMON_CLUSTER_PLANNER_H
#define FRAMED_DAEMON_CLUSTER_PLANNER_H

#include "daemon/cluster/site.h"

// The public members are set, the private ones zero.
struct planner {
    struct etcd *etcd;
    const struct mirror *mirror;
    const struct site *site; // of the mirror
    const char *own;         // this box's name
    int64_t timeout_ns;
    // A plan was written (rc 0), or not: -EAGAIN: another box was first. Within etcd_run.
    void (*written)(void *opaque, int rc);
    void *opaque;
    // Private:
    int64_t turn_ns;           // when a plan may be written that is due; 0: none is
    int64_t joined_ns;         // when this box did; 0: no other box is to be waited for
    int64_t nodes_ns, move_ns; // when the set of nodes changed, when a camera was rebalanced
    uint64_t nodes;            // a hash of that set
    int n_nodes;               // in it
    int64_t plan_ns, version;  // when the plan came, and its version
    int64_t replaced;          // the revision of the plan that a write was to replace
    int64_t retry_ns;          // until when it is not written again
    bool gathers;              // another is due, and waits until boxes obey that one
    bool planned;              // the site as it is asks for no other plan,
    bool balanced;             // nor, for the nodes' balance, may a camera move
    bool writing;
};

void planner_join(struct planner *); // the box is in the cluster, by a new lease
// The site was read again.
void planner_note_nodes(struct planner *);
// Writes a plan that is due, or notes when. 0; -EBADMSG: the plan that holds cannot be read, and is
// left as it is; -EPROTONOSUPPORT: that of a newer framed, likewise; -ENOMEM.
int planner_advance(struct planner *);
// When planner_advance has more to do, without a change; 0: never.
int64_t planner_due_ns(const struct planner *);

#endif
