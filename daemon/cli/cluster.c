#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/process.h"
#include "daemon/cli/cluster_store.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/table.h"
#include "daemon/cluster/documents.h"
#include "daemon/cluster/site.h"

// --- the status, for people

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

// Prints the table after an empty line, unless it has only a head.
static void print_table(struct table *table)
{
    if (table->n > 1) {
        putchar('\n');
        table_print(table, stdout);
    }
    table_free(table);
}

static void put_node(struct table *table, const struct site *site, int i)
{
    const struct node_document *document = &site->node_keys[i]->node;
    table_begin_row(table);
    table_cell(table, "%s", site->nodes[i].name);
    table_cell(table, "%s", site_node_readable(document) ? document->version : "newer");
    table_cell(table, "%.1f", document->room);
    table_cell(table, "%.1f", site_node_used(document));
    table_cell(table, "%d", site_planned(site, site->nodes[i].name));
    table_cell(table, "%d", document->n_running);
    if (site_node_obeys(site, document))
        table_cell(table, "%lld", (long long)document->obeys);
    else
        table_cell(table, "%lld of %lld", (long long)document->obeys,
                   (long long)site->plan->version);
    put_since(table, document->since_ms);
    table_cell(table, "%s", site->nodes[i].draining ? "draining" : "");
}

// Adds a node that is gone and still has cameras, or is still marked for draining.
static void put_gone(struct table *table, const struct cluster_store *store, const char *name)
{
    if (site_node(&store->site, name))
        return;
    table_begin_row(table);
    table_cell(table, "%s", name);
    for (int i = 0; i < 3; i++)
        table_cell(table, "-");
    table_cell(table, "%d", site_planned(&store->site, name));
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

static void put_all_gone(struct table *table, const struct cluster_store *store)
{
    const struct plan *plan = store->site.plan;
    int n;
    const struct mirror_entry *drains = mirror_folder(&store->mirror, "drain/", &n);
    for (int i = 0; plan && i < plan->n; i++)
        if (is_first_of_node(plan, i))
            put_gone(table, store, plan->entries[i].node);
    for (int i = 0; i < n; i++) {
        const char *name = drains[i].key + strlen("drain/");
        if (site_planned(&store->site, name) == 0)
            put_gone(table, store, name);
    }
}

static void print_nodes(const struct cluster_store *store)
{
    static const char *const names[] = {"node",    "version", "room",  "taken", "cameras",
                                        "running", "plan",    "since", ""};
    struct table table = {.right = "llrrrrrrl"};
    head(&table, names, sizeof names / sizeof *names);
    for (int i = 0; i < store->site.n_nodes; i++)
        put_node(&table, &store->site, i);
    put_all_gone(&table, store);
    print_table(&table);
}

static void put_camera(struct table *table, const struct site *site,
                       const struct plan_camera *camera)
{
    const struct site_camera_state state = site_camera_state(site, camera);
    const char *node = state.node[0] ? state.node : "-";
    table_begin_row(table);
    table_cell(table, "%s", camera->name);
    table_cell(table, "%s", node);
    table_cell(table, "%u", (unsigned)state.generation);
    if (camera->wish[0] && strcmp(camera->wish, node) != 0)
        table_cell(table, "%s, to go to %s", state.word, camera->wish);
    else
        table_cell(table, "%s", state.word);
    table_cell(table, "%s", state.why);
}

static void print_cameras(const struct site *site)
{
    static const char *const names[] = {"camera", "node", "generation", "state", ""};
    struct table table = {.right = "llrll"};
    head(&table, names, sizeof names / sizeof *names);
    for (int i = 0; i < site->n_cameras; i++)
        put_camera(&table, site, &site->cameras[i]);
    print_table(&table);
}

static void print_status(const struct cluster_store *store)
{
    const struct site *site = &store->site;
    printf("cluster %s, ", store->name);
    if (site->plan)
        printf("plan %lld", (long long)site->plan->version);
    else
        fputs(site->plan_rc == -EPROTONOSUPPORT ? "a plan of a newer framed" : "no plan yet",
              stdout);
    printf(", %d node%s, %d camera%s\n", site->n_nodes, site->n_nodes == 1 ? "" : "s",
           site->n_cameras, site->n_cameras == 1 ? "" : "s");
    print_nodes(store);
    print_cameras(site);
}

// --- the status, for programs

static json_t *node_json(const struct site *site, int i)
{
    const struct node_document *document = &site->node_keys[i]->node;
    const char *name = site->nodes[i].name;
    return json_pack("{s:s, s:b, s:s, s:s, s:f, s:f, s:i, s:i, s:I, s:b, s:b, s:I, s:o}", "node",
                     name, "readable", site_node_readable(document), "version", document->version,
                     "http", document->http, "room", document->room, "taken",
                     site_node_used(document), "cameras", site_planned(site, name), "running",
                     document->n_running, "plan", (json_int_t)document->obeys, "obeys",
                     site->plan && site_node_obeys(site, document), "draining",
                     site->nodes[i].draining, "since_ms", (json_int_t)document->since_ms, "labels",
                     document_of_labels(&document->labels));
}

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

static json_t *camera_json(const struct site *site, const struct plan_camera *camera)
{
    const struct site_camera_state state = site_camera_state(site, camera);
    return json_pack("{s:s, s:s?, s:s?, s:I, s:s, s:s, s:s?, s:o}", "camera", camera->name, "node",
                     or_null(state.node), "http", state.at ? or_null(state.at->http) : NULL,
                     "generation", (json_int_t)state.generation, "state", state.word, "why",
                     state.why, "wish", or_null(camera->wish), "on",
                     document_of_labels(camera->on));
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
    const struct site *site = &store->site;
    json_t *nodes = json_array(), *cameras = json_array();
    for (int i = 0; i < site->n_nodes; i++)
        json_array_append_new(nodes, node_json(site, i));
    for (int i = 0; i < site->n_cameras; i++)
        json_array_append_new(cameras, camera_json(site, &site->cameras[i]));
    return print_json(json_pack("{s:s, s:I, s:o, s:o}", "site", store->name, "plan",
                                (json_int_t)(site->plan ? site->plan->version : 0), "nodes", nodes,
                                "cameras", cameras));
}

// Each returns an enum exit_code.
static int cluster_status(struct cluster_store *store, bool json)
{
    const int code = cluster_store_read(store);
    if (code != EXIT_OK)
        return code;
    if (json)
        return print_status_json(store);
    print_status(store);
    return EXIT_OK;
}

// Prints the camera's node and its address. EXIT_RUNTIME, with the reason printed: it has none.
static int cluster_where(struct cluster_store *store, const char *name, bool json)
{
    const int code = cluster_store_read(store);
    if (code != EXIT_OK)
        return code;
    const struct plan_camera *camera = site_camera(&store->site, name);
    if (!camera) {
        fprintf(stderr, "framed cluster: %s is no camera of the cluster\n", name);
        return EXIT_RUNTIME;
    }
    if (json)
        return print_json(camera_json(&store->site, camera));
    const struct site_camera_state state = site_camera_state(&store->site, camera);
    if (!state.node[0]) {
        fprintf(stderr, "framed cluster: %s runs nowhere: %s\n", name, state.why);
        return EXIT_RUNTIME;
    }
    printf("%s %s %s\n", state.node, state.word,
           state.at && state.at->http[0] ? state.at->http : "-");
    return EXIT_OK;
}

// --- the command

static void usage(FILE *to)
{
    fputs(
        "usage: framed cluster COMMAND [OPTION]...\n"
        "Cameras that any of several daemons may run, and these daemons, by way of their etcd.\n\n"
        "  apply -f FILE        make the cluster's cameras those of a configuration file\n"
        "  add FILE...          add the cameras of files\n"
        "  remove CAMERA...     remove cameras\n"
        "  status               print what nodes and cameras do\n"
        "  where CAMERA         print the node that runs it, what it does and the node's address\n"
        "  move CAMERA NODE     have that node run it, while it can; - for NODE: any\n"
        "  drain NODE           have it give its cameras away, and take none\n"
        "  undrain NODE         let it take cameras again\n\n"
        "  -c, --config FILE   a daemon's configuration, whose `cluster` names etcd\n"
        "                      (" DEFAULT_CONFIG ")\n"
        "  -f, --file FILE     of apply: the cameras; of its keys, cameras and defaults count\n"
        "  --prune             of apply: remove cameras that are not in FILE\n"
        "  --json              of status and where: print everything, for programs\n",
        to);
}

enum { WORDS_MAX = 1024 };

struct cluster_order {
    const char *config, *file;
    bool prune, json;
    const char *words[WORDS_MAX]; // the command and its arguments
    int n;
};

static int take(void *opaque, int option, const char *text)
{
    struct cluster_order *order = opaque;
    if (option == 'c')
        order->config = text;
    else if (option == 'f')
        order->file = text;
    else if (option == 'p')
        order->prune = true;
    else
        order->json = true;
    return EXIT_OK;
}

static int take_argument(void *opaque, const char *text)
{
    struct cluster_order *order = opaque;
    if (order->n == WORDS_MAX)
        return command_line_refuse("framed cluster", text, "is one argument too many");
    order->words[order->n++] = text;
    return EXIT_OK;
}

static int run_apply(struct cluster_store *store, const struct cluster_order *order)
{
    return cluster_apply(store, order->file, order->prune);
}

static int run_add(struct cluster_store *store, const struct cluster_order *order)
{
    return cluster_add(store, order->words + 1, order->n - 1);
}

static int run_remove(struct cluster_store *store, const struct cluster_order *order)
{
    return cluster_remove(store, order->words + 1, order->n - 1);
}

static int run_status(struct cluster_store *store, const struct cluster_order *order)
{
    return cluster_status(store, order->json);
}

static int run_where(struct cluster_store *store, const struct cluster_order *order)
{
    return cluster_where(store, order->words[1], order->json);
}

static int run_move(struct cluster_store *store, const struct cluster_order *order)
{
    return cluster_move(store, order->words[1], order->words[2]);
}

static int run_drain(struct cluster_store *store, const struct cluster_order *order)
{
    return cluster_drain(store, order->words[1], true);
}

static int run_undrain(struct cluster_store *store, const struct cluster_order *order)
{
    return cluster_drain(store, order->words[1], false);
}

static const struct command {
    const char *name;
    int (*run)(struct cluster_store *, const struct cluster_order *);
    int least, most; // arguments
    bool file, json;
} commands[] = {
    {"apply", run_apply, .file = true},
    {"add", run_add, .least = 1, .most = WORDS_MAX},
    {"remove", run_remove, .least = 1, .most = WORDS_MAX},
    {"status", run_status, .json = true},
    {"where", run_where, .least = 1, .most = 1, .json = true},
    {"move", run_move, .least = 2, .most = 2},
    {"drain", run_drain, .least = 1, .most = 1},
    {"undrain", run_undrain, .least = 1, .most = 1},
};

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int refuse(const char *word, const char *what)
{
    return command_line_refuse("framed cluster", word, what);
}

// Returns EXIT_OK, or EXIT_USAGE with the mistake printed.
static int check_order(const struct cluster_order *order, const struct command *command)
{
    if (order->n - 1 < command->least)
        return refuse(command->name, "wants an argument more");
    if (order->n - 1 > command->most)
        return refuse(order->words[command->most + 1], "is one argument too many");
    if (command->file && !order->file)
        return refuse(command->name, "wants -f FILE");
    if (!command->file && (order->file || order->prune))
        return refuse(order->file ? "-f" : "--prune", "is only of apply");
    if (!command->json && order->json)
        return refuse("--json", "is only of status and where");
    return EXIT_OK;
}

static int run(const struct cluster_order *order)
{
    struct cluster_store store;
    if (order->n == 0)
        return refuse("COMMAND", "is missing");
    const struct command *command = find(order->words[0]);
    if (!command)
        return refuse(order->words[0], "is no command of it");
    int code = check_order(order, command);
    if (code == EXIT_OK)
        code = cluster_store_open(&store, order->config);
    if (code != EXIT_OK)
        return code;
    code = command->run(&store, order);
    cluster_store_close(&store);
    return code;
}

int cluster_main(int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'}, {"file", required_argument, NULL, 'f'},
        {"prune", no_argument, NULL, 'p'},        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},         {0},
    };
    static const struct command_line line = {"framed cluster", ":c:f:h", options, usage, take,
                                             take_argument};
    struct cluster_order order = {.config = DEFAULT_CONFIG};
    bool help;
    const int code = command_line_read(&line, argc, argv, &order, &help);
    return code != EXIT_OK || help ? code : run(&order);
}
