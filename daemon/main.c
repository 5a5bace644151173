#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "daemon/bench/bench.h"
#include "daemon/check.h"
#include "daemon/client/client.h"
#include "daemon/daemon.h"
#include "daemon/tune/tune.h"

struct arguments {
    const char *config;
    const char *metrics;
};

struct command {
    const char *name, *help;
    int (*run)(const struct arguments *);
    bool takes_config, takes_metrics;
    int (*main)(int argc, char **argv); // instead of run: has options of its own
};

static int load(const struct arguments *arguments, struct config **config)
{
    if (config_load(config, arguments->config, stderr) != 0)
        return EXIT_CONFIG;
    return check_pin(*config, strcmp(arguments->config, "-") ? arguments->config : "stdin");
}

static int run(const struct arguments *arguments)
{
    struct config *config = NULL;
    struct daemon_options options = {.file = arguments->config, .metrics = arguments->metrics};
    int code = check_cpu("run");
    if (code == EXIT_OK)
        code = load(arguments, &config);
    if (code == EXIT_OK)
        code = daemon_run(config, &options);
    config_free(config);
    return code;
}

static int check(const struct arguments *arguments)
{
    struct config *config = NULL;
    int code = check_cpu("check");
    if (code == EXIT_OK)
        code = load(arguments, &config);
    if (code == EXIT_OK)
        code = check_box(config, arguments->config);
    config_free(config);
    return code;
}

static int defaults(const struct arguments *arguments)
{
    (void)arguments;
    config_print_defaults(stdout);
    return EXIT_OK;
}

static int schema(const struct arguments *arguments)
{
    (void)arguments;
    config_print_schema(stdout);
    return EXIT_OK;
}

static int keys(const struct arguments *arguments)
{
    (void)arguments;
    config_print_keys(stdout);
    return EXIT_OK;
}

static int version(const struct arguments *arguments)
{
    (void)arguments;
    printf("framed %s (backends: cpu"
#ifdef FRAMED_CUDA
           ", cuda"
#endif
           ")\n",
           FRAMED_VERSION_TEXT);
    return EXIT_OK;
}

static const struct command commands[] = {
    {"run", "take in the cameras and hand out their frames, in the foreground", run, true, true,
     NULL},
    {"check", "print every mistake in the configuration, or else the memory that it needs", check,
     true, false, NULL},
    {"status", "say what the framed that runs does now (framed status --help)", NULL, false, false,
     status_main},
    {"reload", "make the framed that runs read its configuration again", NULL, false, false,
     reload_main},
    {"defaults", "print a configuration with every key and its default", defaults, false, false,
     NULL},
    {"schema", "print the configuration's JSON Schema (draft-07)", schema, false, false, NULL},
    {"keys", "print the table of keys as Markdown", keys, false, false, NULL},
    {"version", "print the version and the backends built in", version, false, false, NULL},
    {"bench", "measure this box (framed bench --help)", NULL, false, false, bench_main},
    {"tune", "find the settings that are fast on this box (framed tune --help)", NULL, false, false,
     tune_main},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int usage(FILE *to, int code)
{
    fputs("usage: framed COMMAND [-c FILE]\n\n", to);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
    fputs("\n  -c, --config FILE   the configuration (" DEFAULT_CONFIG "; - is standard input)\n"
          "  --metrics FILE      run: write the counters there on SIGUSR1 and at the end\n",
          to);
    return code;
}

static const struct command *find(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

// What stands where no URL belongs may be one.
static int refuse(const char *word, const char *what)
{
    char shown[256];
    fprintf(stderr, "framed %s: %s (framed --help lists the commands)\n",
            config_url_redacted(word, shown, sizeof shown), what);
    return EXIT_USAGE;
}

// The command's own arguments, which follow its name.
static int parse(const struct command *command, int argc, char **argv, struct arguments *arguments)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"metrics", required_argument, NULL, 'm'},
        {0},
    };
    int option;
    opterr = 0; // said here; the colon tells a value that is missing
    while ((option = getopt_long(argc, argv, ":c:", options, NULL)) != -1) {
        if (option == 'c' && command->takes_config)
            arguments->config = optarg;
        else if (option == 'm' && command->takes_metrics)
            arguments->metrics = optarg;
        else if (option == ':')
            return refuse(argv[optind - 1], "wants a value");
        else if (option == '?')
            return refuse(argv[optind - 1], "bad option");
        else
            return refuse(command->name,
                          option == 'c' ? "takes no --config" : "takes no --metrics");
    }
    return optind == argc ? EXIT_OK : refuse(argv[optind], "takes no further argument");
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.config = DEFAULT_CONFIG};
    if (argc < 2)
        return usage(stderr, EXIT_USAGE);
    if (is_help(argv[1]))
        return usage(stdout, EXIT_OK);
    if (strcmp(argv[1], "--version") == 0)
        argv[1] = "version";
    const struct command *command = find(argv[1]);
    if (!command)
        return refuse(argv[1], "no such command");
    if (command->main)
        return command->main(argc - 1, argv + 1);
    if (argc == 3 && is_help(argv[2]))
        return usage(stdout, EXIT_OK);
    int code = parse(command, argc - 1, argv + 1, &arguments);
    return code == EXIT_OK ? command->run(&arguments) : code;
}
