#include "daemon/cluster/planner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/number.h"
#include "daemon/cluster/etcd.h"

// The first node by name writes a plan at once, the others later, one after another: not all need
// to compute and send a plan that only one can write.
static const int64_t TURN_NS = 150 * INT64_C(1000000), TURN_MOST_NS = 900 * INT64_C(1000000);
static const int64_t CALM_NS = 60 * INT64_C(1000000000); // of unchanged nodes before a rebalance
// Time for other nodes to join before the first plan, and when all nodes return after an outage of
// the store: a node that has just joined would give itself their cameras.
static const int64_t FIRST_NS = 2 * INT64_C(1000000000);
static const int64_t RETRY_NS = INT64_C(1000000000); // until a refused plan is tried again
// Time for nodes to obey a plan before the next.
static const int64_t GATHER_NS = 2 * INT64_C(1000000000);
static const int64_t MOVE_NS = 10 * INT64_C(1000000000); // between two moves to rebalance

void planner_note_nodes(struct planner *planner)
{
    uint64_t state = HASH_BEGIN;
    for (int i = 0; i < planner->site->n_nodes; i++) {
        const struct plan_node *node = &planner->site->nodes[i];
        state = hash_bytes(state, node->name, strlen(node->name) + 1);
        state = hash_bytes(state, &node->incarnation, sizeof node->incarnation);
    }
    if (state != planner->nodes)
        planner->nodes_ns = boottime_ns();
    if (planner->site->n_nodes < planner->n_nodes)
        planner->joined_ns = 0; // a node left while this one was in, and does not return at once
    planner->nodes = state;
    planner->n_nodes = planner->site->n_nodes;
    if (planner->site->plan && planner->site->plan->version != planner->version) {
        planner->version = planner->site->plan->version;
        planner->plan_ns = boottime_ns();
    }
    planner->planned = planner->balanced = false;
}

static void plan_written(void *opaque, int rc, const struct etcd_answer *answer)
{
    struct planner *planner = opaque;
    planner->writing = false;
    planner->retry_ns = boottime_ns() + RETRY_NS; // etcd's disk may be full for long
    planner->written(planner->opaque, rc < 0 ? rc : answer->succeeded ? 0 : -EAGAIN);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Lists the nodes in the old plan that are gone, each once.
static int find_dead(const struct site *site, const char **dead)
{
    int n = 0, unique = 0;
    for (int i = 0; site->plan && i < site->plan->n; i++) {
        const char *node = site->plan->entries[i].node;
        if (*node && !site_node(site, node))
            dead[n++] = node;
    }
    if (n > 0)
        qsort(dead, (size_t)n, sizeof *dead, compare_names);
    for (int i = 0; i < n; i++)
        if (unique == 0 || strcmp(dead[unique - 1], dead[i]) != 0)
            dead[unique++] = dead[i];
    return unique;
}

static int write_plan(struct planner *planner, const struct plan *plan)
{
    enum { COMPARES_MAX = 120, KEY_MAX = 256 }; // etcd's limit is 128
    const struct site *site = planner->site;
    const struct mirror_entry *seen = mirror_find(planner->mirror, "plan");
    const char **dead = calloc((size_t)(site->plan ? site->plan->n : 0) + 1, sizeof *dead);
    struct etcd_compare *compare = calloc(COMPARES_MAX, sizeof *compare);
    char(*keys)[KEY_MAX] = calloc(COMPARES_MAX, sizeof *keys);
    char *json = plan_print(plan);
    int n = 0, rc = dead && compare && keys && json ? 0 : -ENOMEM;
    if (rc == 0) {
        const int n_dead = find_dead(site, dead);
        snprintf(keys[n], KEY_MAX, "%splan", planner->mirror->prefix);
        compare[n++] = (struct etcd_compare){.kind = ETCD_MOD_REVISION,
                                             .value = seen ? seen->mod_revision : 0};
        snprintf(keys[n], KEY_MAX, "%snode/%s", planner->mirror->prefix, planner->own);
        compare[n++] = (struct etcd_compare){.kind = ETCD_VERSION_ABOVE, .value = 0};
        for (int i = 0; i < n_dead && n < COMPARES_MAX; i++) {
            snprintf(keys[n], KEY_MAX, "%snode/%s", planner->mirror->prefix, dead[i]);
            compare[n++] = (struct etcd_compare){.kind = ETCD_VERSION, .value = 0};
        }
        for (int i = 0; i < n; i++)
            compare[i].key = keys[i];
        const struct etcd_write put = {.key = keys[0], .value = json};
        rc = etcd_commit(planner->etcd, compare, n, &put, 1, planner->timeout_ns, plan_written,
                         planner);
    }
    planner->writing = rc == 0;
    planner->replaced = seen ? seen->mod_revision : 0;
    free(json);
    free(keys);
    free(compare);
    free(dead);
    return rc;
}

static int own_rank(const struct planner *planner)
{
    const struct plan_node *own = site_node(planner->site, planner->own);
    return own ? (int)(own - planner->site->nodes) : planner->site->n_nodes;
}

static bool may_rebalance(const struct planner *planner, int64_t now_ns)
{
    return own_rank(planner) == 0 && now_ns - planner->nodes_ns > CALM_NS &&
           now_ns - planner->move_ns > MOVE_NS && site_obeys(planner->site);
}

// Each plan makes every node write its key and read all others', so changes in quick succession
// wait for one plan.
static bool gathers(const struct planner *planner, int64_t now_ns)
{
    return planner->site->plan && now_ns < planner->plan_ns + GATHER_NS &&
           !site_obeys(planner->site);
}

// Returns true if a plan in place of the current one was sent already. It is not sent again until
// the watch shows another plan, or a refused one is tried again.
static bool is_sent(const struct planner *planner, int64_t now_ns)
{
    const struct mirror_entry *seen = mirror_find(planner->mirror, "plan");
    return now_ns < planner->retry_ns && planner->replaced == (seen ? seen->mod_revision : 0);
}

// Returns true if this node writes the next plan now; else notes when to look again.
static bool is_own_turn(struct planner *planner, int64_t now_ns)
{
    int64_t wait_ns = own_rank(planner) * TURN_NS;
    if (wait_ns > TURN_MOST_NS)
        wait_ns = TURN_MOST_NS;
    if (!planner->site->plan || (planner->joined_ns && now_ns - planner->joined_ns < FIRST_NS))
        wait_ns += FIRST_NS;
    if (planner->turn_ns == 0)
        planner->turn_ns = now_ns + wait_ns;
    return now_ns >= planner->turn_ns;
}

void planner_join(struct planner *planner)
{
    planner->joined_ns = planner->nodes_ns = boottime_ns();
    planner->turn_ns = 0;
    planner->writing = false;
}

int planner_advance(struct planner *planner)
{
    const struct site *site = planner->site;
    const int64_t now_ns = boottime_ns();
    const struct plan_wishes wishes = {.rebalance = may_rebalance(planner, now_ns)};
    struct plan *next = NULL;
    planner->gathers = false;
    if (site->plan_rc < 0)
        planner->turn_ns = 0;
    if (planner->writing || site->plan_rc < 0)
        return site->plan_rc;
    if (planner->planned && (planner->balanced || !wishes.rebalance))
        return 0;
    int rc = plan_next(&next, site->plan, site->cameras, site->n_cameras, site->nodes,
                       site->n_nodes, &wishes);
    if (rc == 1) {
        planner->turn_ns = 0;
        planner->planned = true;
        planner->balanced = wishes.rebalance;
    }
    planner->gathers = rc == 0 && gathers(planner, now_ns);
    if (planner->gathers)
        planner->turn_ns = 0; // turns begin when all nodes obey, or had the time to
    else if (rc == 0 && is_sent(planner, now_ns))
        planner->turn_ns = planner->retry_ns;
    else if (rc == 0 && is_own_turn(planner, now_ns) && (rc = write_plan(planner, next)) == 0) {
        planner->turn_ns = 0;
        if (wishes.rebalance)
            planner->move_ns = now_ns;
    }
    if (rc < 0) // no memory
        planner->turn_ns = now_ns + RETRY_NS;
    plan_free(next);
    return rc < 0 ? rc : 0;
}

int64_t planner_due_ns(const struct planner *planner)
{
    return planner->writing   ? 0
           : planner->gathers ? planner->plan_ns + GATHER_NS
                              : planner->turn_ns;
}
