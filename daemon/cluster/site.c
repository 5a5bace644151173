#include "daemon/cluster/site.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/supervisor/edit.h"

// --- keys

static int parse(struct site_key *key, const struct mirror_entry *entry)
{
    switch (key->kind) {
    case SITE_NODE:
        return node_document_parse(&key->node, entry->value, entry->length);
    case SITE_CAMERA:
        return camera_document_parse(&key->camera, entry->value, entry->length);
    case SITE_PLAN:
        return plan_parse(&key->plan, entry->value, entry->length);
    }
    return -EBADMSG;
}

static void drop(struct site_key *key)
{
    if (!key || --key->uses > 0)
        return;
    if (key->kind == SITE_NODE)
        node_document_clear(&key->node);
    else if (key->kind == SITE_CAMERA)
        camera_document_clear(&key->camera);
    else
        plan_free(key->plan);
    free(key);
}

// `known`: the same key from before; NULL: it is new. Returns NULL without memory.
static struct site_key *read_key(enum site_kind kind, const struct mirror_entry *entry,
                                 struct site_key *known)
{
    if (known && known->serial == entry->serial) {
        known->uses++;
        return known;
    }
    struct site_key *key = calloc(1, sizeof *key);
    if (!key)
        return NULL;
    key->kind = kind;
    key->serial = entry->serial;
    key->revision = entry->mod_revision;
    key->uses = 1;
    key->rc = parse(key, entry);
    if (key->rc == -ENOMEM) {
        drop(key);
        return NULL;
    }
    return key;
}

// --- nodes

// Returns true if the operator drains the node. The node's own key counts as well, though this
// framed never sets it there: a node that stops revokes its lease.
static bool is_draining(const struct mirror *mirror, const char *node)
{
    char key[sizeof "drain/" + PLAN_NAME_SIZE];
    snprintf(key, sizeof key, "drain/%s", node);
    return mirror_find(mirror, key);
}

static void describe_node(struct plan_node *node, const struct node_document *document,
                          const struct mirror *mirror)
{
    node->incarnation = document->incarnation;
    node->obeys = document->obeys;
    node->room = document->room;
    node->taken = document->taken;
    node->counts = document->counts;
    node->labels = document->labels;
    node->draining = document->draining || is_draining(mirror, node->name);
    node->refused = document->refused;
    node->refused_n = document->n_refused;
}

static int read_nodes(struct site *site, const struct mirror *mirror, const struct site *before)
{
    int n, at = 0;
    const struct mirror_entry *entries = mirror_folder(mirror, "node/", &n);
    site->nodes = calloc((size_t)n + 1, sizeof *site->nodes);
    site->node_keys = calloc((size_t)n + 1, sizeof *site->node_keys);
    if (!site->nodes || !site->node_keys)
        return -ENOMEM;
    for (int i = 0; i < n; i++) {
        const char *name = entries[i].key + strlen("node/");
        int order = 1;
        if (strlen(name) >= PLAN_NAME_SIZE || !is_document_name(name))
            continue; // no framed has such a name
        while (at < before->n_nodes && (order = strcmp(before->nodes[at].name, name)) < 0)
            at++;
        struct site_key *key =
            read_key(SITE_NODE, &entries[i], order == 0 ? before->node_keys[at] : NULL);
        if (!key)
            return -ENOMEM;
        struct plan_node *node = &site->nodes[site->n_nodes];
        site->node_keys[site->n_nodes++] = key;
        strcpy(node->name, name);
        describe_node(node, &key->node, mirror);
    }
    return 0;
}

// --- cameras

static void describe_camera(struct plan_camera *camera, const struct camera_document *document,
                            const struct plan_camera *before)
{
    if (before) {
        camera->cost = before->cost;
        camera->generation = before->generation;
    }
    camera->expected = document->cost;
    camera->on = document->on.n > 0 ? &document->on : NULL;
    memcpy(camera->wish, document->wish, sizeof camera->wish);
}

static int read_cameras(struct site *site, const struct mirror *mirror, const struct site *before)
{
    int n, at = 0;
    const struct mirror_entry *entries = mirror_folder(mirror, "camera/", &n);
    site->cameras = calloc((size_t)n + 1, sizeof *site->cameras);
    site->camera_keys = calloc((size_t)n + 1, sizeof *site->camera_keys);
    if (!site->cameras || !site->camera_keys)
        return -ENOMEM;
    for (int i = 0; i < n; i++) {
        const char *name = entries[i].key + strlen("camera/");
        int order = 1;
        if (strlen(name) >= PLAN_NAME_SIZE || edit_name_wrong(name)) // no plan may name it
            continue;
        while (at < before->n_cameras && (order = strcmp(before->cameras[at].name, name)) < 0)
            at++;
        struct site_key *known = order == 0 ? before->camera_keys[at] : NULL;
        struct site_key *key = read_key(SITE_CAMERA, &entries[i], known);
        if (!key)
            return -ENOMEM;
        struct plan_camera *camera = &site->cameras[site->n_cameras];
        site->camera_keys[site->n_cameras++] = key;
        strcpy(camera->name, name);
        describe_camera(camera, &key->camera, known ? &before->cameras[at] : NULL);
    }
    return 0;
}

// --- what is known of cameras

static int compare_name(const void *name, const void *camera)
{
    return strcmp(name, ((const struct plan_camera *)camera)->name);
}

static struct plan_camera *find_camera(const struct site *site, const char *name)
{
    return site->n_cameras > 0 ? bsearch(name, site->cameras, (size_t)site->n_cameras,
                                         sizeof *site->cameras, compare_name)
                               : NULL;
}

static void note_generation(struct plan_camera *camera, uint32_t generation)
{
    if (plan_is_newer(generation, camera->generation))
        camera->generation = generation;
}

static void note_running(struct site *site)
{
    for (int i = 0; i < site->n_nodes; i++) {
        const struct node_document *node = &site->node_keys[i]->node;
        for (int k = 0; k < node->n_running; k++) {
            struct plan_camera *camera = find_camera(site, node->running[k].camera);
            if (!camera)
                continue;
            note_generation(camera, node->running[k].generation);
            if (node->running[k].cost > 0)
                camera->cost = node->running[k].cost;
        }
    }
}

// Nodes stop their cameras when the plan is gone, and no longer report their generations.
static void note_lost_plan(struct site *site, const struct plan *lost)
{
    for (int i = 0; !site->plan && lost && i < lost->n; i++) {
        struct plan_camera *camera = find_camera(site, lost->entries[i].camera);
        if (camera)
            note_generation(camera, lost->entries[i].generation);
    }
}

// --- what nodes refused

static int read_troubles(struct site *site, const struct mirror *mirror)
{
    int n, rc = 0;
    const struct mirror_entry *entries = mirror_folder(mirror, "trouble/", &n);
    site->troubles = calloc((size_t)n + 1, sizeof *site->troubles);
    if (!site->troubles)
        return -ENOMEM;
    for (int i = 0; i < n && rc != -ENOMEM; i++) {
        struct site_trouble *trouble = &site->troubles[site->n_troubles];
        const char *name = entries[i].key + strlen("trouble/");
        if (strlen(name) >= PLAN_NAME_SIZE)
            continue;
        rc = trouble_document_parse(&trouble->document, entries[i].value, entries[i].length);
        strcpy(trouble->camera, name);
        site->n_troubles += rc == 0;
    }
    return rc == -ENOMEM ? rc : 0;
}

// --- all of it

static int read_plan(struct site *site, const struct mirror *mirror, const struct site *before)
{
    const struct mirror_entry *entry = mirror_find(mirror, "plan");
    if (!entry)
        return 0;
    site->plan_key = read_key(SITE_PLAN, entry, before->plan_key);
    if (!site->plan_key)
        return -ENOMEM;
    site->plan = site->plan_key->plan;
    site->plan_rc = site->plan_key->rc;
    return 0;
}

static uint64_t placement_of(const struct site *site, const struct site *before)
{
    const bool same = before->placement > 0 && site->plan_key == before->plan_key &&
                      site->n_cameras == before->n_cameras &&
                      memcmp(site->camera_keys, before->camera_keys,
                             sizeof *site->camera_keys * (size_t)site->n_cameras) == 0;
    return before->placement + !same;
}

int site_read(struct site *ret, const struct mirror *mirror, const struct site *before)
{
    *ret = (struct site){0};
    int rc = read_nodes(ret, mirror, before);
    if (rc == 0)
        rc = read_cameras(ret, mirror, before);
    if (rc == 0)
        rc = read_troubles(ret, mirror);
    if (rc == 0)
        rc = read_plan(ret, mirror, before);
    if (rc < 0) {
        site_clear(ret);
        return rc;
    }
    note_running(ret);
    note_lost_plan(ret, before->plan);
    ret->placement = placement_of(ret, before);
    return 0;
}

void site_clear(struct site *site)
{
    for (int i = 0; i < site->n_nodes; i++)
        drop(site->node_keys[i]);
    for (int i = 0; i < site->n_cameras; i++)
        drop(site->camera_keys[i]);
    drop(site->plan_key);
    free(site->nodes);
    free(site->node_keys);
    free(site->cameras);
    free(site->camera_keys);
    free(site->troubles);
    *site = (struct site){0};
}

const struct plan_node *site_node(const struct site *site, const char *name)
{
    for (int i = 0; i < site->n_nodes; i++)
        if (strcmp(site->nodes[i].name, name) == 0)
            return &site->nodes[i];
    return NULL;
}

const struct node_document *site_document(const struct site *site, const char *name)
{
    const struct plan_node *node = site_node(site, name);
    return node ? &site->node_keys[node - site->nodes]->node : NULL;
}

const struct plan_camera *site_camera(const struct site *site, const char *name)
{
    return find_camera(site, name);
}

const struct site_key *site_camera_key(const struct site *site, const char *name)
{
    const struct plan_camera *found = find_camera(site, name);
    return found ? site->camera_keys[found - site->cameras] : NULL;
}

static int compare_trouble(const void *camera, const void *trouble)
{
    return strcmp(camera, ((const struct site_trouble *)trouble)->camera);
}

const struct trouble_document *site_trouble(const struct site *site, const char *camera)
{
    static const struct trouble_document none;
    const struct site_trouble *found =
        site->n_troubles > 0 ? bsearch(camera, site->troubles, (size_t)site->n_troubles,
                                       sizeof *site->troubles, compare_trouble)
                             : NULL;
    return found ? &found->document : &none;
}

bool site_node_obeys(const struct site *site, const struct node_document *node)
{
    return !site->plan || node->obeys == site->plan->version;
}

bool site_obeys(const struct site *site)
{
    for (int i = 0; i < site->n_nodes; i++)
        if (!site_node_obeys(site, &site->node_keys[i]->node))
            return false;
    return true;
}

// --- the state of nodes and cameras

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
