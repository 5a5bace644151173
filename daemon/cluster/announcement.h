// What this box says of itself in etcd: its own key, which lives with its lease, and which of the
// site's cameras it cannot run. Used by the member's thread alone.
#ifndef FRAMED_DAEMON_CLUSTER_ANNOUNCEMENT_H
#define FRAMED_DAEMON_CLUSTER_ANNOUNCEMENT_H

#include "daemon/cluster/site.h"

struct refused_camera {
    char camera[PLAN_NAME_SIZE];
    int64_t revision; // of the text that was refused
    bool runs;        // by the text before
    char why[DOCUMENT_WHY_SIZE];
};

// What the loop thread reports.
struct member_facts {
    int64_t obeys;      // version of the last orders of which all that was to stop has stopped
    double room, taken; // as of struct node_document, as is:
    bool counts;
    int n_running, n_refused;
    struct running_camera *running;
    struct refused_camera *refused;
};

// 0 or -ENOMEM; the copy is for facts_clear.
int facts_copy(struct member_facts *ret, const struct member_facts *);
void facts_clear(struct member_facts *);
// Whether they differ in more than the load, so that other boxes wait for them.
bool facts_differ(const struct member_facts *, const struct member_facts *);

// A write of the own key. Its answer may come when the box has left, joined again and writes anew.
struct announcement_write {
    struct announcement *own;
    int64_t lease;
    bool under_way;
};
enum { ANNOUNCEMENT_WRITES = 4 }; // a box joins at most so often within `timeout_ns`

// The public members are set, the private ones zero.
struct announcement {
    struct etcd *etcd;
    const struct mirror *mirror;
    const struct site *site;          // of the mirror
    const struct plan_labels *labels; // as of struct member_context, as is:
    const char *node, *version, *http;
    int64_t timeout_ns;
    void (*gone)(void *opaque); // the own key is not there any more. Within etcd_run
    void *opaque;
    // Private:
    int64_t lease;
    int64_t joined_ms; // CLOCK_REALTIME
    int64_t written_ns;
    int64_t n_refused; // cameras, as it was written
    struct announcement_write writes[ANNOUNCEMENT_WRITES];
    bool stale; // etcd does not have the newest facts, for which others may wait
};

// Writes the own key for the first time, where nobody has that name, or this box itself by the
// lease `before`: it takes the name over without others seeing it gone. `done` comes with
// answer.succeeded. 0 or -ENOMEM.
int announcement_join(struct announcement *, int64_t lease, int64_t before,
                      const struct member_facts *, etcd_done *done, void *opaque);
// Writes what changed: at once with `urgent`, or else every ten seconds.
void announcement_refresh(struct announcement *, const struct member_facts *, bool urgent);
// Writes what is wrong with which camera, and removes what was.
void announcement_troubles(struct announcement *, const struct member_facts *);

#endif
