// This box as a member of a cluster. A thread keeps the box's lease at etcd, watches the site's
// keys, writes the next plan (plan.h) where that is this box's turn, and says which cameras the box
// is to run. It knows no camera: the loop thread carries out the orders and reports what runs.
//
// Rules, of which each keeps a camera from being shown by two boxes at once:
// - An order holds until a fence: 0.6 x lease from when the last keepalive that etcd answered was
//   sent. etcd counts the lease from when it received that, so that no other box may take the
//   cameras before. A box that was cut off comes back as a new one, by a new lease and new fence.
// - A plan is written only if it replaces the plan that it was computed from, and if the keys of
//   the boxes whose cameras it gives away are gone.
// - A camera starts once every living box obeys the plan: they have stopped what it takes from
// them.
#ifndef FRAMED_DAEMON_CLUSTER_MEMBER_H
#define FRAMED_DAEMON_CLUSTER_MEMBER_H

#include <stdatomic.h>

#include "daemon/cluster/announcement.h"

struct member;

struct member_context {
    const struct cluster_config *config; // outlives the member, as all here
    const char *node;                    // this box's name
    const struct plan_labels *labels;    // of this box
    const char *version;                 // framed's
    const char *http;                    // where other boxes reach this one's API; "": nowhere
    // New orders wait for member_take_orders; not called where only the site has changed, which
    // member_look shows. The member's thread.
    void (*changed)(void *opaque);
    void *opaque;
};

struct member_order {
    char camera[PLAN_NAME_SIZE];
    char *text;       // of a configuration with that camera
    int64_t revision; // of the text
    uint32_t generation;
};

// All cameras that the box is to run now, or has to go on running.
struct member_orders {
    int64_t version; // of the plan; 0: the box is not in the cluster
    int n;
    struct member_order *list;
    bool may_start;                  // else those that do not run yet wait for other boxes
    const _Atomic int64_t *fence_ns; // CLOCK_BOOTTIME; outlives all orders, until member_close
};

enum member_state { MEMBER_OUT, MEMBER_JOINING, MEMBER_IN };

// 0 with the thread running, or negative errno.
int member_open(struct member **ret, const struct member_context *);
// Gives the lease back: other boxes take the cameras, which have ended or stop now. Never blocks.
void member_stop(struct member *);
// After member_stop: waits for the thread up to `ms`. False: it hangs in the resolver, and is left
// to the end of the process with all that it was given. Accepts NULL.
bool member_close(struct member *, int ms);

// --- loop thread
// The newest orders, to be cleared; false: they are those that were taken last.
bool member_take_orders(struct member *, struct member_orders *ret);
void member_orders_clear(struct member_orders *);
// What runs now; copied.
void member_report(struct member *, const struct member_facts *);

// --- any thread
struct member_where {
    bool reached;              // etcd has said at all what cameras there are
    bool known;                // the plan has the camera
    bool here;                 // this box
    char node[PLAN_NAME_SIZE]; // "": unplaced
    char http[DOCUMENT_URL_SIZE];
    uint32_t generation;
};
struct member_where member_where(struct member *, const char *camera);
// Calls `look` with what is known of the site; other threads wait meanwhile.
void member_look(struct member *, void (*look)(void *opaque, const struct site *), void *opaque);
const char *member_node(const struct member *); // this box's name
const char *member_site(const struct member *);
struct member_health {
    enum member_state state;
    int64_t alone_ns; // since etcd answered no more; 0: it answers
    int64_t version;  // of the plan
    int nodes, cameras, unplaced;
    char error[256]; // "": none
    uint64_t lost;   // times that the lease was lost
    uint64_t plans;  // that this box wrote
};
struct member_health member_health(struct member *);

#endif
