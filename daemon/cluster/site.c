#include "daemon/cluster/site.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- nodes

// What the operator said counts, and what the node said as it stops.
static bool is_draining(const struct mirror *mirror, const char *node)
{
    char key[sizeof "drain/" + PLAN_NAME_SIZE];
    snprintf(key, sizeof key, "drain/%s", node);
    return mirror_find(mirror, key);
}

static int read_node(struct site *site, const struct mirror *mirror,
                     const struct mirror_entry *entry)
{
    struct plan_node *node = &site->nodes[site->n_nodes];
    struct node_document *document = &site->documents[site->n_nodes];
    const char *name = entry->key + strlen("node/");
    if (strlen(name) >= PLAN_NAME_SIZE)
        return 0; // no framed has such a name
    site->n_nodes++;
    snprintf(node->name, sizeof node->name, "%s", name);
    int rc = node_document_parse(document, entry->value, entry->length);
    if (rc < 0)
        return rc == -ENOMEM ? rc : 0;
    node->incarnation = document->incarnation;
    node->room = document->room;
    node->taken = document->taken;
    node->labels = document->labels;
    node->draining = document->draining || is_draining(mirror, name);
    node->refused = document->refused;
    node->refused_n = document->n_refused;
    return 0;
}

static int read_nodes(struct site *site, const struct mirror *mirror)
{
    int n, rc = 0;
    const struct mirror_entry *entries = mirror_folder(mirror, "node/", &n);
    site->nodes = calloc((size_t)n + 1, sizeof *site->nodes);
    site->documents = calloc((size_t)n + 1, sizeof *site->documents);
    if (!site->nodes || !site->documents)
        return -ENOMEM;
    for (int i = 0; rc == 0 && i < n; i++)
        rc = read_node(site, mirror, &entries[i]);
    return rc;
}

// --- cameras

// What its node measured last; a new camera counts as the usual one until it runs.
static double cost_of(const struct site *site, const char *camera)
{
    for (int i = 0; i < site->n_nodes; i++)
        for (int k = 0; k < site->documents[i].n_running; k++) {
            const struct running_camera *running = &site->documents[i].running[k];
            if (strcmp(running->camera, camera) == 0 && running->cost > 0)
                return running->cost;
        }
    return 1;
}

static int read_camera(struct site *site, const struct mirror_entry *entry)
{
    struct plan_camera *camera = &site->cameras[site->n_cameras];
    struct camera_document document;
    const char *name = entry->key + strlen("camera/");
    if (strlen(name) >= PLAN_NAME_SIZE)
        return 0;
    int rc = camera_document_parse(&document, entry->value, entry->length);
    if (rc == -ENOMEM)
        return rc;
    *camera = (struct plan_camera){.cost = cost_of(site, name)};
    snprintf(camera->name, sizeof camera->name, "%s", name);
    if (rc == 0) {
        camera->on = document.on;
        memcpy(camera->wish, document.wish, sizeof camera->wish);
        camera_document_clear(&document);
    }
    site->texts[site->n_cameras++] = entry;
    return 0;
}

static int read_cameras(struct site *site, const struct mirror *mirror)
{
    int n, rc = 0;
    const struct mirror_entry *entries = mirror_folder(mirror, "camera/", &n);
    site->cameras = calloc((size_t)n + 1, sizeof *site->cameras);
    site->texts = calloc((size_t)n + 1, sizeof *site->texts);
    if (!site->cameras || !site->texts)
        return -ENOMEM;
    for (int i = 0; rc == 0 && i < n; i++)
        rc = read_camera(site, &entries[i]);
    return rc;
}

// --- all of it

int site_read(struct site *ret, const struct mirror *mirror)
{
    const struct mirror_entry *plan = mirror_find(mirror, "plan");
    *ret = (struct site){0};
    int rc = read_nodes(ret, mirror);
    if (rc == 0)
        rc = read_cameras(ret, mirror);
    if (rc == 0 && plan)
        ret->plan_rc = plan_parse(&ret->plan, plan->value, plan->length);
    if (ret->plan_rc < 0)
        ret->plan = NULL;
    if (ret->plan_rc == -ENOMEM)
        rc = -ENOMEM;
    if (rc < 0)
        site_clear(ret);
    return rc;
}

void site_clear(struct site *site)
{
    for (int i = 0; i < site->n_nodes; i++)
        node_document_clear(&site->documents[i]);
    free(site->nodes);
    free(site->documents);
    free(site->cameras);
    free(site->texts);
    plan_free(site->plan);
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
    return node ? &site->documents[node - site->nodes] : NULL;
}

static int compare_name(const void *name, const void *camera)
{
    return strcmp(name, ((const struct plan_camera *)camera)->name);
}

const struct mirror_entry *site_text(const struct site *site, const char *camera)
{
    const struct plan_camera *found = bsearch(camera, site->cameras, (size_t)site->n_cameras,
                                              sizeof *site->cameras, compare_name);
    return found ? site->texts[found - site->cameras] : NULL;
}

bool site_obeys(const struct site *site)
{
    for (int i = 0; i < site->n_nodes; i++)
        if (site->plan && site->documents[i].obeys != site->plan->version)
            return false;
    return true;
}
