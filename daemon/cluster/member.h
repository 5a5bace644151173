// This node as a member of a cluster. A thread keeps the node's lease at etcd, watches the site's
// keys, writes the next plan (plan.h) when it is this node's turn, and orders the cameras to run.
// It has no camera itself: the loop thread carries out the orders and reports the running cameras.
//
// Each of these rules keeps a camera from being shown by two nodes at once:
// - An order holds until a fence: 0.6 x lease after the last answered keepalive was sent. etcd
//   counts the lease from its receipt of the keepalive, so no other node may take the cameras
//   earlier. A node that was cut off comes back as a new one, with a new lease and a new fence.
// - A plan is written only if it replaces the plan that it was computed from, and if the keys of
//   the dead nodes whose cameras it gives away are gone.
// - A camera starts once every living node obeys the plan, and has stopped the cameras that it
//   loses.
#ifndef FRAMED_DAEMON_CLUSTER_MEMBER_H
#define FRAMED_DAEMON_CLUSTER_MEMBER_H

#include <stdatomic.h>

#include "daemon/cluster/announcement.h"

struct member;

struct member_context {
    const struct cluster_config *config; // outlives the member, like all below
    const char *node;                    // this node's name
    const struct plan_labels *labels;    // of this node
    const char *version;                 // framed's
    const char *http;                    // URL of this node's API for other nodes; "": none
    // New orders wait for member_take_orders. Not called if only the site has changed: see
    // member_look. The member's thread.
    void (*changed)(void *opaque);
    void *opaque;
};

struct member_order {
    char camera[PLAN_NAME_SIZE];
    char *text;       // of a configuration with that camera
    int64_t revision; // of the text
    uint32_t generation;
};

// All cameras that the node has to run now, or to keep running.
struct member_orders {
    int64_t version; // of the plan; 0: the node is not in the cluster
    int n;
    struct member_order *list;
    bool may_start;                  // else cameras that do not run yet wait for other nodes
    const _Atomic int64_t *fence_ns; // CLOCK_BOOTTIME; outlives all orders, until member_close
};

enum member_state { MEMBER_OUT, MEMBER_JOINING, MEMBER_IN };

// Returns 0 with the thread running, or a negative errno.
int member_open(struct member **ret, const struct member_context *);
// Revokes the lease: other nodes take the cameras, which have ended or stop now. Never blocks.
void member_stop(struct member *);
// Must follow member_stop. Waits for the thread up to `ms`. Returns false if it hangs in the
// resolver: the thread and its data then live until the process ends. Accepts NULL.
bool member_close(struct member *, int ms);

// --- loop thread
// Returns true with the newest orders, to be cleared; false if they were taken already.
bool member_take_orders(struct member *, struct member_orders *ret);
void member_orders_clear(struct member_orders *);
// Reports the running cameras; copied.
void member_report(struct member *, const struct member_facts *);

// --- any thread
struct member_where {
    bool reached;              // the site's cameras were read from etcd at least once
    bool known;                // the plan has the camera
    bool here;                 // on this node
    char node[PLAN_NAME_SIZE]; // "": unplaced
    char http[DOCUMENT_URL_SIZE];
    uint32_t generation;
};
struct member_where member_where(struct member *, const char *camera);
// Calls `look` with the site as it was read last; other threads wait meanwhile.
void member_look(struct member *, void (*look)(void *opaque, const struct site *), void *opaque);
const char *member_node(const struct member *); // this node's name
const char *member_site(const struct member *);
struct member_health {
    enum member_state state;
    int64_t alone_ns; // when etcd stopped answering; 0: it answers
    int64_t version;  // of the plan
    int nodes, cameras, unplaced;
    char error[256]; // "": none
    uint64_t lost;   // number of lost leases
    uint64_t plans;  // written by this node
};
struct member_health member_health(struct member *);

#endif
