// What the nodes and cameras of a site do, in words for people: `framed cluster status`, HTTP and
// the page all say the same.
#ifndef FRAMED_DAEMON_CLUSTER_SITE_STATE_H
#define FRAMED_DAEMON_CLUSTER_SITE_STATE_H

#include "daemon/cluster/site.h"

enum { SITE_WHY_SIZE = DOCUMENT_WHY_SIZE + PLAN_NAME_SIZE + 32 };

struct site_camera_state {
    // running, starting (its node has still to open it, waits for other nodes, or refused it),
    // waiting (its node is gone), unplaced (no node may or can run it) or unreadable (a newer
    // framed wrote it)
    const char *word;
    char why[SITE_WHY_SIZE];        // without passwords; "": there is nothing to say
    const char *node;               // as the site; "": none
    const struct node_document *at; // of that node; NULL: it does not live
    uint32_t generation;
};
struct site_camera_state site_camera_state(const struct site *, const struct plan_camera *);

// Each for a node of the site:
bool site_node_readable(const struct node_document *);   // else a newer framed wrote it
double site_node_used(const struct node_document *);     // of its room, by all of its cameras
int site_planned(const struct site *, const char *node); // cameras that the plan gives it

// Counts of cameras.
struct site_counts {
    int elsewhere; // that run at other nodes
    int troubled;  // that do not run
};
struct site_counts site_counts(const struct site *, const char *own_node);

#endif
