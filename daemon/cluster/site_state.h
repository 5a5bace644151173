// The state of a site's nodes and cameras in words for people, the same in `framed cluster status`,
// HTTP and the page.
#ifndef FRAMED_DAEMON_CLUSTER_SITE_STATE_H
#define FRAMED_DAEMON_CLUSTER_SITE_STATE_H

#include "daemon/cluster/site.h"

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
