#include "daemon/cluster/site_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"

static const char RUNNING[] = "running", STARTING[] = "starting";

// --- nodes

bool site_node_readable(const struct node_document *node)
{
    return node->incarnation != 0;
}

double site_node_used(const struct node_document *node)
{
    double sum = node->taken + (node->counts ? node->n_running : 0);
    for (int i = 0; !node->counts && i < node->n_running; i++)
        sum += node->running[i].cost;
    return sum;
}

int site_planned(const struct site *site, const char *node)
{
    int n = 0;
    for (int i = 0; site->plan && i < site->plan->n; i++)
        n += !strcmp(site->plan->entries[i].node, node);
    return n;
}

// --- cameras

static bool runs_at(const struct node_document *node, const char *camera, uint32_t generation)
{
    for (int i = 0; node && i < node->n_running; i++)
        if (strcmp(node->running[i].camera, camera) == 0)
            return node->running[i].generation == generation;
    return false;
}

// Returns a reason if no node has written one.
static const char *why_unplaced(const struct site *site, const struct plan_camera *camera)
{
    bool any = false, fits = false, open = false;
    if (site->plan_rc == -EPROTONOSUPPORT)
        return "the plan is of a newer framed";
    for (int i = 0; i < site->n_nodes; i++) {
        if (!site_node_readable(&site->node_keys[i]->node))
            continue;
        any = true;
        if (!plan_labels_fit(&site->nodes[i].labels, camera->on))
            continue;
        fits = true;
        open |= !site->nodes[i].draining;
    }
    return !any                                   ? "no node lives"
           : !plan_find(site->plan, camera->name) ? "it is in no plan yet"
           : !fits                                ? "no node has its labels"
           : !open                                ? "every node that may run it is draining"
                                                  : "no node has room for it";
}

// Returns a node that has not carried out the plan: no camera starts before (member.h). NULL: none.
static const char *node_behind(const struct site *site)
{
    for (int i = 0; i < site->n_nodes; i++)
        if (!site_node_obeys(site, &site->node_keys[i]->node))
            return site->nodes[i].name;
    return NULL;
}

static void explain(const struct site *site, const struct plan_camera *camera, bool readable,
                    struct site_camera_state *state)
{
    const struct trouble_document *trouble = site_trouble(site, camera->name);
    const char *behind = node_behind(site);
    char why[SITE_WHY_SIZE] = "";
    // A running camera keeps its previous text if its node refused the new one.
    const bool counts = state->word != RUNNING || strcmp(trouble->node, state->node) == 0;
    if (!readable)
        snprintf(why, sizeof why, "it is of a newer framed");
    else if (trouble->why[0] && counts)
        snprintf(why, sizeof why, "%s: %s", trouble->node, trouble->why);
    else if (!state->node[0])
        snprintf(why, sizeof why, "%s", why_unplaced(site, camera));
    else if (state->word == STARTING && behind)
        snprintf(why, sizeof why, "waits for %s, which has not carried out plan %" PRId64, behind,
                 site->plan->version);
    log_scrub(state->why, sizeof state->why, why);
}

struct site_camera_state site_camera_state(const struct site *site,
                                           const struct plan_camera *camera)
{
    const struct plan_entry *entry = plan_find(site->plan, camera->name);
    const bool readable = site->camera_keys[camera - site->cameras]->rc == 0;
    struct site_camera_state state = {.node = entry ? entry->node : "",
                                      .at = entry ? site_document(site, entry->node) : NULL,
                                      .generation = entry ? entry->generation : 0};
    const bool runs = runs_at(state.at, camera->name, state.generation);
    state.word = runs             ? RUNNING
                 : !readable      ? "unreadable"
                 : !state.node[0] ? "unplaced"
                 : state.at       ? STARTING
                                  : "waiting";
    explain(site, camera, readable, &state);
    return state;
}

struct site_counts site_counts(const struct site *site, const char *own_node)
{
    struct site_counts counts = {0};
    for (int i = 0; i < site->n_cameras; i++) {
        const struct site_camera_state state = site_camera_state(site, &site->cameras[i]);
        if (state.word != RUNNING)
            counts.troubled++;
        else if (strcmp(state.node, own_node) != 0)
            counts.elsewhere++;
    }
    return counts;
}
