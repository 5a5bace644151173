#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config/expand.h"
#include "config/load.h"
#include "config/print.h"
#include "config/url.h"
#include "daemon/base/process.h"
#include "daemon/cli/commands.h"
#include "daemon/daemon.h"
#include "daemon/supervisor/machine_check.h"

struct arguments {
    const char *config;
    const char *metrics;
    bool probe;
};

// Options of the commands without a main of their own: bits, so that each lists its options.
enum { OPTION_CONFIG = 1, OPTION_METRICS = 2, OPTION_PROBE = 4 };

static const struct command_option {
    int bit;
    const char *name, *value; // value NULL: takes none
    int letter;               // of its short form, or another number
    const char *help;
} command_options[] = {
    {OPTION_CONFIG, "config", "FILE", 'c',
     "the configuration (" DEFAULT_CONFIG "; - is standard input)"},
    {OPTION_METRICS, "metrics", "FILE", 'm' << 8,
     "write the counters there on SIGUSR1 and at the end"},
    {OPTION_PROBE, "probe", NULL, 'p' << 8,
     "open the cameras too, and print what each gives; exit 1 where one gives no picture"},
};

enum { OPTIONS = sizeof command_options / sizeof command_options[0] };

struct command {
    const char *name, *help;
    int (*run)(const struct arguments *);
    int options;                        // OPTION_ bits
    int (*main)(int argc, char **argv); // instead of run: has its own options
};

// Holds SIGHUP and SIGUSR1 from the first moment of `framed run`: the constructors of the libraries
// take longer than the rest up to daemon_prepare_process. No sanitizer is ready yet.
__attribute__((no_sanitize("address", "thread", "undefined"))) static void
hold_signals(int argc, char **argv, char **environment)
{
    const uint64_t held = UINT64_C(1) << (SIGHUP - 1) | UINT64_C(1) << (SIGUSR1 - 1);
    (void)environment;
    if (argc > 1 && argv[1][0] == 'r' && argv[1][1] == 'u' && argv[1][2] == 'n' && !argv[1][3])
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, &held, NULL, sizeof held);
}
__attribute__((section(".preinit_array"),
               used)) static void (*hold_signals_first)(int argc, char **argv,
                                                        char **environment) = hold_signals;

static int run(const struct arguments *arguments)
{
    struct config *config = NULL;
    struct daemon_options options = {.file = arguments->config, .metrics = arguments->metrics};
    const struct config_load_options loading = {.judge = machine_check_process};
    first_process_leave(); // without a child, process 1 runs the cameras like any other process
    daemon_prepare_process();
    int code = check_cpu("framed run");
    if (code == EXIT_OK && config_load_with(&config, arguments->config, &loading, stderr) != 0)
        code = EXIT_CONFIG;
    if (code == EXIT_OK)
        code = daemon_run(config, &options);
    config_free(config);
    return code;
}

static int check(const struct arguments *arguments)
{
    struct config *config = NULL;
    struct unit *unit = NULL;
    int code = check_cpu("framed check");
    if (code == EXIT_OK && unit_open(&unit, arguments->config) < 0)
        code = EXIT_RUNTIME;
    const struct config_load_options loading = {
        .judge = machine_check_machine, .unit = unit, .warnings = stderr};
    if (code == EXIT_OK && config_load_with(&config, arguments->config, &loading, stderr) != 0)
        code = EXIT_CONFIG;
    if (code == EXIT_OK) {
        unit_print_used(unit, stdout);
        code = check_box(config, arguments->config, arguments->probe);
    }
    config_free(config);
    unit_close(unit);
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
    {"run", "take in the cameras and hand out their frames, in the foreground", run,
     OPTION_CONFIG | OPTION_METRICS, NULL},
    {"check", "print every mistake in the configuration, or else the memory that it needs", check,
     OPTION_CONFIG | OPTION_PROBE, NULL},
    {"status", "print what the running daemon does now", NULL, 0, status_main},
    {"reload", "make the running daemon read its configuration again", NULL, 0, reload_main},
    {"pause", "close a camera of the running daemon until it is resumed", NULL, 0, pause_main},
    {"resume", "open a camera again that was paused", NULL, 0, resume_main},
    {"probe", "play a camera for some seconds and print what it sends", NULL, 0, probe_main},
    {"discover", "look for ONVIF cameras and print the URLs of their streams", NULL, 0,
     discover_main},
    {"record", "make the running daemon write a clip of a camera", NULL, 0, record_main},
    {"snap", "print the next picture of a camera, or of an output, as a JPEG", NULL, 0, snap_main},
    {"verify", "hold tensors to frameworks, and decoders to the cpu", NULL, 0, verify_main},
    {"cluster", "say which cameras several daemons share, and what these do", NULL, 0,
     cluster_main},
    {"support", "pack what helps to find a fault, without passwords", NULL, 0, support_main},
    {"defaults", "print a configuration with every key and its default", defaults, 0, NULL},
    {"schema", "print the configuration's JSON Schema (draft-07)", schema, 0, NULL},
    {"keys", "print the table of keys as Markdown", keys, 0, NULL},
    {"version", "print the version and the backends built in", version, 0, NULL},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int usage(FILE *to, int code)
{
    fputs("usage: framed COMMAND [OPTION]...\n\n", to);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
    fputs("\nframed COMMAND --help lists the options of a command.\n", to);
    return code;
}

static const struct command *find(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int refuse(const char *word)
{
    char shown[256]; // a misplaced word may be a URL
    fprintf(stderr, "framed %s: no such command (framed --help lists the commands)\n",
            config_url_shown(word, shown, sizeof shown));
    return EXIT_USAGE;
}

// --- the options of a command without a main of its own

static void print_usage(const struct command *command)
{
    char option[32];
    printf("usage: framed %s%s\n\nframed %s: %s\n", command->name,
           command->options ? " [OPTION]..." : "", command->name, command->help);
    for (int i = 0, listed = 0; i < OPTIONS; i++) {
        const struct command_option *o = &command_options[i];
        if (!(command->options & o->bit))
            continue;
        const bool has_letter = o->letter <= 'z';
        snprintf(option, sizeof option, "%s--%s %s", has_letter ? "-c, " : "", o->name,
                 o->value ? o->value : "");
        if (has_letter)
            option[1] = (char)o->letter;
        printf("%s  %-19s %s\n", listed++ ? "" : "\n", option, o->help);
    }
}

static int take(void *opaque, int letter, const char *value)
{
    struct arguments *arguments = opaque;
    int i = 0;
    while (command_options[i].letter != letter)
        i++;
    switch (command_options[i].bit) {
    case OPTION_CONFIG:
        arguments->config = value;
        break;
    case OPTION_METRICS:
        arguments->metrics = value;
        break;
    case OPTION_PROBE:
        arguments->probe = true;
        break;
    }
    return EXIT_OK;
}

// Parses the command's own arguments, which follow its name.
static int parse(const struct command *command, int argc, char **argv, struct arguments *arguments,
                 bool *help)
{
    struct option known[OPTIONS + 2] = {{"help", no_argument, NULL, 'h'}};
    char letters[OPTIONS * 2 + 3] = ":h", name[32];
    const struct command_line line = {name, letters, known, NULL, take, NULL};
    snprintf(name, sizeof name, "framed %s", command->name);
    for (int i = 0, n = 1; i < OPTIONS; i++) {
        const struct command_option *o = &command_options[i];
        if (!(command->options & o->bit))
            continue;
        known[n++] =
            (struct option){o->name, o->value ? required_argument : no_argument, NULL, o->letter};
        if (o->letter <= 'z')
            snprintf(letters + strlen(letters), 3, "%c%s", o->letter, o->value ? ":" : "");
    }
    return command_line_read(&line, argc, argv, arguments, help);
}

static int run_command(const struct command *command, int argc, char **argv)
{
    struct arguments arguments = {.config = DEFAULT_CONFIG};
    bool help = false;
    if (command->main)
        return command->main(argc, argv);
    const int code = parse(command, argc, argv, &arguments, &help);
    if (code == EXIT_OK && help)
        print_usage(command);
    return code == EXIT_OK && !help ? command->run(&arguments) : code;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int main(int argc, char **argv)
{
    char name[32];
    descriptors_record();
    descriptors_fill_standard();
    if (argc < 2)
        return usage(stderr, EXIT_USAGE);
    snprintf(name, sizeof name, "framed %.24s", argv[1]);
    if (is_help(argv[1]))
        return command_line_finish(name, usage(stdout, EXIT_OK));
    if (strcmp(argv[1], "--version") == 0)
        argv[1] = "version";
    const struct command *command = find(argv[1]);
    if (!command)
        return refuse(argv[1]);
    return command_line_finish(name, run_command(command, argc - 1, argv + 1));
}
