// Announcement of this node in etcd: its own key, which lives with its lease, and the site's
// cameras that it cannot run. Used by the member's thread alone.
#ifndef FRAMED_DAEMON_CLUSTER_ANNOUNCEMENT_H
#define FRAMED_DAEMON_CLUSTER_ANNOUNCEMENT_H

#include "daemon/cluster/site.h"

struct refused_camera {
    char camera[PLAN_NAME_SIZE];
    int64_t revision; // of the refused text
    bool runs;        // by its previous text
    char why[DOCUMENT_WHY_SIZE];
};

// Report of the loop thread.
struct member_facts {
    int64_t obeys;      // version of the last orders whose removed cameras have all stopped
    double room, taken; // these and `counts`: see struct node_document
    bool counts;
    int n_running, n_refused;
    struct running_camera *running;
    struct refused_camera *refused;
};

// Copies the facts for facts_clear. Returns 0 or -ENOMEM.
int facts_copy(struct member_facts *ret, const struct member_facts *);
void facts_clear(struct member_facts *);
// Returns true if more than the load differs: other nodes wait for such a change.
bool facts_differ(const struct member_facts *, const struct member_facts *);

// A write of the own key. The answer may come after the node has left, joined and written again.
struct announcement_write {
    struct announcement *own;
    int64_t lease;
    bool under_way;
};
enum { ANNOUNCEMENT_WRITES = 4 }; // most joins of a node within `timeout_ns`

// The caller sets the public members and zeroes the private ones.
struct announcement {
    struct etcd *etcd;
    const struct mirror *mirror;
    const struct site *site;          // of the mirror
    const struct plan_labels *labels; // see struct member_context, also for the next line
    const char *node, *version, *http;
    int64_t timeout_ns;
    void (*gone)(void *opaque); // the own key does not exist any more. Within etcd_run
    void *opaque;
    // Private:
    int64_t lease;
    int64_t joined_ms; // CLOCK_REALTIME
    int64_t written_ns;
    int64_t n_refused; // cameras in the last written key
    struct announcement_write writes[ANNOUNCEMENT_WRITES];
    bool stale; // etcd lacks the newest facts, and other nodes may wait for them
};

// Writes the own key for the first time, if the name is free or its key is this node's own from the
// lease `before`: others then never see the name gone. `done` gets answer.succeeded. Returns 0 or
// -ENOMEM.
int announcement_join(struct announcement *, int64_t lease, int64_t before,
                      const struct member_facts *, etcd_done *done, void *opaque);
// Writes changes: at once with `urgent`, else every ten seconds.
void announcement_refresh(struct announcement *, const struct member_facts *, bool urgent);
// Writes the reason for each refused camera, and removes outdated reasons.
void announcement_troubles(struct announcement *, const struct member_facts *);

#endif
