#include <stdlib.h>
#include <string.h>

#include "daemon/base/process.h"
#include "daemon/cli/cluster_apply.h"
#include "daemon/cli/cluster_view.h"
#include "daemon/cli/commands.h"

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

struct order {
    const char *config, *file;
    bool prune, json;
    const char *words[WORDS_MAX]; // the command and its arguments
    int n;
};

static int take(void *opaque, int option, const char *text)
{
    struct order *order = opaque;
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
    struct order *order = opaque;
    if (order->n == WORDS_MAX)
        return command_line_refuse("framed cluster", text, "is one argument too many");
    order->words[order->n++] = text;
    return EXIT_OK;
}

static int run_apply(struct cluster_store *store, const struct order *order)
{
    return cluster_apply(store, order->file, order->prune);
}

static int run_add(struct cluster_store *store, const struct order *order)
{
    return cluster_add(store, order->words + 1, order->n - 1);
}

static int run_remove(struct cluster_store *store, const struct order *order)
{
    return cluster_remove(store, order->words + 1, order->n - 1);
}

static int run_status(struct cluster_store *store, const struct order *order)
{
    return cluster_status(store, order->json);
}

static int run_where(struct cluster_store *store, const struct order *order)
{
    return cluster_where(store, order->words[1], order->json);
}

static int run_move(struct cluster_store *store, const struct order *order)
{
    return cluster_move(store, order->words[1], order->words[2]);
}

static int run_drain(struct cluster_store *store, const struct order *order)
{
    return cluster_drain(store, order->words[1], true);
}

static int run_undrain(struct cluster_store *store, const struct order *order)
{
    return cluster_drain(store, order->words[1], false);
}

static const struct command {
    const char *name;
    int (*run)(struct cluster_store *, const struct order *);
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
static int check_order(const struct order *order, const struct command *command)
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

static int run(const struct order *order)
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
    struct order order = {.config = DEFAULT_CONFIG};
    bool help;
    const int code = command_line_read(&line, argc, argv, &order, &help);
    return code != EXIT_OK || help ? code : run(&order);
}
