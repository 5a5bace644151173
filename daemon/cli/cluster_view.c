#include "daemon/cli/cluster_view.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/exit_code.h"
#include "daemon/base/log.h"
#include "daemon/cli/table.h"

enum { WHY_SIZE = DOCUMENT_WHY_SIZE + PLAN_NAME_SIZE + 32 };

// --- what is so

static bool fits(const struct plan_labels *has, const struct plan_labels *wanted)
{
    for (int i = 0; i < wanted->n; i++) {
        bool found = false;
        for (int j = 0; j < has->n; j++)
            found |= !strcmp(has->list[j].key, wanted->list[i].key) &&
                     !strcmp(has->list[j].value, wanted->list[i].value);
        if (!found)
            return false;
    }
    return true;
}

// Why a camera has no node, where nobody has written that down.
static const char *why_unplaced(const struct cluster_store *store,
                                const struct stored_camera *camera)
{
    bool any = false, labels = false;
    for (int i = 0; i < store->n_nodes; i++) {
        any |= store->nodes[i].readable;
        labels |= store->nodes[i].readable &&
                  fits(&store->nodes[i].document.labels, &camera->document.on);
    }
    return !any ? "no node lives" : !labels ? "no node has its labels" : "no node has room for it";
}

static const struct running_camera *find_running(const struct stored_node *node, const char *name)
{
    for (int i = 0; node && i < node->document.n_running; i++)
        if (strcmp(node->document.running[i].camera, name) == 0)
            return &node->document.running[i];
    return NULL;
}

// What the camera does and, where it does not run, why.
static const char *camera_state(const struct cluster_store *store,
                                const struct stored_camera *camera, char why[WHY_SIZE])
{
    const struct plan_entry *entry = plan_find(store->plan, camera->name);
    const struct stored_trouble *trouble = cluster_store_trouble(store, camera->name);
    const struct stored_node *node = entry ? cluster_store_node(store, entry->node) : NULL;
    const struct running_camera *running = find_running(node, camera->name);
    why[0] = 0;
    if (running && running->generation == entry->generation)
        return "running";
    if (trouble && trouble->document.why[0])
        snprintf(why, WHY_SIZE, "%s%s%s", trouble->document.node,
                 trouble->document.node[0] ? ": " : "", trouble->document.why);
    if (!camera->readable) {
        snprintf(why, WHY_SIZE, "it is of a newer framed");
        return "unreadable";
    }
    if (entry && entry->node[0])
        return node ? "starting" : "waiting";
    if (!why[0])
        snprintf(why, WHY_SIZE, "%s",
                 store->newer_plan ? "the plan is of a newer framed"
                 : entry           ? why_unplaced(store, camera)
                                   : "it is in no plan yet");
    return "unplaced";
}

static double used(const struct stored_node *node)
{
    double sum = node->document.taken;
    for (int i = 0; i < node->document.n_running; i++)
        sum += node->document.running[i].cost;
    return sum;
}

static int cameras_of(const struct cluster_store *store, const char *node)
{
    int n = 0;
    for (int i = 0; store->plan && i < store->plan->n; i++)
        n += !strcmp(store->plan->entries[i].node, node);
    return n;
}

static bool is_draining(const struct cluster_store *store, const struct stored_node *node)
{
    return node->document.draining || cluster_store_drains(store, node->name);
}

static bool obeys(const struct cluster_store *store, const struct stored_node *node)
{
    return store->plan && node->document.obeys >= store->plan->version;
}

// --- for people

static void put_since(struct table *table, int64_t since_ms)
{
    const int64_t s = realtime_ns() / 1000000000 - since_ms / 1000;
    if (since_ms <= 0 || s < 0)
        table_cell(table, "-");
    else if (s < 120)
        table_cell(table, "%lld s", (long long)s);
    else if (s < 7200)
        table_cell(table, "%lld min", (long long)s / 60);
    else if (s < 172800)
        table_cell(table, "%lld h", (long long)s / 3600);
    else
        table_cell(table, "%lld d", (long long)s / 86400);
}

static void head(struct table *table, const char *const names[], int n)
{
    table_begin_row(table);
    for (int i = 0; i < n; i++)
        table_cell(table, "%s", names[i]);
}

// Below an empty line, where there is more than the head.
static void print_table(struct table *table)
{
    if (table->n > 1) {
        putchar('\n');
        table_print(table, stdout);
    }
    table_free(table);
}

static void put_node(struct table *table, const struct cluster_store *store,
                     const struct stored_node *node)
{
    const struct node_document *document = &node->document;
    table_begin_row(table);
    table_cell(table, "%s", node->name);
    table_cell(table, "%s", node->readable ? document->version : "newer");
    table_cell(table, "%.1f", document->room);
    table_cell(table, "%.1f", used(node));
    table_cell(table, "%d", cameras_of(store, node->name));
    table_cell(table, "%d", document->n_running);
    if (!store->plan || obeys(store, node))
        table_cell(table, "%lld", (long long)document->obeys);
    else
        table_cell(table, "%lld of %lld", (long long)document->obeys,
                   (long long)store->plan->version);
    put_since(table, document->since_ms);
    table_cell(table, "%s", is_draining(store, node) ? "draining" : "");
}

// Nodes that are gone and still have cameras, or are still to be drained.
static void put_gone(struct table *table, const struct cluster_store *store, const char *name)
{
    if (cluster_store_node(store, name))
        return;
    table_begin_row(table);
    table_cell(table, "%s", name);
    for (int i = 0; i < 3; i++)
        table_cell(table, "-");
    table_cell(table, "%d", cameras_of(store, name));
    for (int i = 0; i < 3; i++)
        table_cell(table, "-");
    table_cell(table, "%s", cluster_store_drains(store, name) ? "gone, draining" : "gone");
}

static bool is_first_of_node(const struct plan *plan, int at)
{
    for (int i = 0; i < at; i++)
        if (!strcmp(plan->entries[i].node, plan->entries[at].node))
            return false;
    return plan->entries[at].node[0];
}

static void print_nodes(const struct cluster_store *store)
{
    static const char *const names[] = {"node",    "version", "room",  "taken", "cameras",
                                        "running", "plan",    "since", ""};
    struct table table = {.right = "llrrrrrrl"};
    head(&table, names, sizeof names / sizeof *names);
    for (int i = 0; i < store->n_nodes; i++)
        put_node(&table, store, &store->nodes[i]);
    for (int i = 0; store->plan && i < store->plan->n; i++)
        if (is_first_of_node(store->plan, i))
            put_gone(&table, store, store->plan->entries[i].node);
    for (int i = 0; i < store->n_drains; i++)
        if (cameras_of(store, store->drains[i]) == 0)
            put_gone(&table, store, store->drains[i]);
    print_table(&table);
}

static void put_camera(struct table *table, const struct cluster_store *store,
                       const struct stored_camera *camera)
{
    const struct plan_entry *entry = plan_find(store->plan, camera->name);
    char why[WHY_SIZE], clean[WHY_SIZE];
    const char *state = camera_state(store, camera, why);
    const char *node = entry && entry->node[0] ? entry->node : "-";
    log_scrub(clean, sizeof clean, why);
    table_begin_row(table);
    table_cell(table, "%s", camera->name);
    table_cell(table, "%s", node);
    table_cell(table, "%u", entry ? (unsigned)entry->generation : 0);
    if (camera->document.wish[0] && strcmp(camera->document.wish, node) != 0)
        table_cell(table, "%s, to go to %s", state, camera->document.wish);
    else
        table_cell(table, "%s", state);
    table_cell(table, "%s", clean);
}

static void print_cameras(const struct cluster_store *store)
{
    static const char *const names[] = {"camera", "node", "generation", "state", ""};
    struct table table = {.right = "llrll"};
    head(&table, names, sizeof names / sizeof *names);
    for (int i = 0; i < store->n_cameras; i++)
        put_camera(&table, store, &store->cameras[i]);
    print_table(&table);
}

static void print_status(const struct cluster_store *store)
{
    printf("cluster %s, ", store->site);
    if (store->plan)
        printf("plan %lld", (long long)store->plan->version);
    else
        fputs(store->newer_plan ? "a plan of a newer framed" : "no plan yet", stdout);
    printf(", %d node%s, %d camera%s\n", store->n_nodes, store->n_nodes == 1 ? "" : "s",
           store->n_cameras, store->n_cameras == 1 ? "" : "s");
    print_nodes(store);
    print_cameras(store);
}

// --- for programs

static json_t *labels_json(const struct plan_labels *labels)
{
    json_t *object = json_object();
    for (int i = 0; i < labels->n; i++)
        json_object_set_new(object, labels->list[i].key, json_string(labels->list[i].value));
    return object;
}

static json_t *node_json(const struct cluster_store *store, const struct stored_node *node)
{
    const struct node_document *document = &node->document;
    return json_pack("{s:s, s:b, s:s, s:s, s:f, s:f, s:i, s:i, s:I, s:b, s:b, s:I, s:o}", "node",
                     node->name, "readable", node->readable, "version", document->version, "http",
                     document->http, "room", document->room, "taken", used(node), "cameras",
                     cameras_of(store, node->name), "running", document->n_running, "plan",
                     (json_int_t)document->obeys, "obeys", obeys(store, node), "draining",
                     is_draining(store, node), "since_ms", (json_int_t)document->since_ms, "labels",
                     labels_json(&document->labels));
}

static json_t *camera_json(const struct cluster_store *store, const struct stored_camera *camera)
{
    const struct plan_entry *entry = plan_find(store->plan, camera->name);
    const struct stored_node *node = entry ? cluster_store_node(store, entry->node) : NULL;
    const char *wish = camera->document.wish;
    char why[WHY_SIZE], clean[WHY_SIZE];
    const char *state = camera_state(store, camera, why);
    log_scrub(clean, sizeof clean, why);
    return json_pack("{s:s, s:s?, s:s?, s:I, s:s, s:s, s:s?, s:o}", "camera", camera->name, "node",
                     entry && entry->node[0] ? entry->node : NULL, "http",
                     node && node->document.http[0] ? node->document.http : NULL, "generation",
                     (json_int_t)(entry ? entry->generation : 0), "state", state, "why", clean,
                     "wish", wish[0] ? wish : NULL, "on", labels_json(&camera->document.on));
}

static int print_json(json_t *json)
{
    const bool good =
        json && json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) == 0;
    json_decref(json);
    if (good)
        putchar('\n');
    return good ? EXIT_OK : EXIT_RUNTIME;
}

static int print_status_json(const struct cluster_store *store)
{
    json_t *nodes = json_array(), *cameras = json_array();
    for (int i = 0; i < store->n_nodes; i++)
        json_array_append_new(nodes, node_json(store, &store->nodes[i]));
    for (int i = 0; i < store->n_cameras; i++)
        json_array_append_new(cameras, camera_json(store, &store->cameras[i]));
    return print_json(json_pack("{s:s, s:I, s:o, s:o}", "site", store->site, "plan",
                                (json_int_t)(store->plan ? store->plan->version : 0), "nodes",
                                nodes, "cameras", cameras));
}

int cluster_status(struct cluster_store *store, bool json)
{
    const int code = cluster_store_read(store);
    if (code != EXIT_OK)
        return code;
    if (json)
        return print_status_json(store);
    print_status(store);
    return EXIT_OK;
}

int cluster_where(struct cluster_store *store, const char *name, bool json)
{
    char why[WHY_SIZE], clean[WHY_SIZE];
    const int code = cluster_store_read(store);
    if (code != EXIT_OK)
        return code;
    const struct stored_camera *camera = cluster_store_camera(store, name);
    if (!camera) {
        fprintf(stderr, "framed cluster: %s is no camera of the cluster\n", name);
        return EXIT_RUNTIME;
    }
    if (json)
        return print_json(camera_json(store, camera));
    const struct plan_entry *entry = plan_find(store->plan, name);
    const char *state = camera_state(store, camera, why);
    log_scrub(clean, sizeof clean, why);
    if (!entry || !entry->node[0]) {
        fprintf(stderr, "framed cluster: %s runs nowhere: %s\n", name, clean);
        return EXIT_RUNTIME;
    }
    const struct stored_node *node = cluster_store_node(store, entry->node);
    printf("%s %s %s\n", entry->node, state,
           node && node->document.http[0] ? node->document.http : "-");
    return EXIT_OK;
}
