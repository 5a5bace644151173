#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config/expand.h"
#include "config/load.h"
#include "config/print.h"
#include "daemon/base/log.h"
#include "daemon/base/process.h"
#include "daemon/cli/commands.h"

// --- the bundle: a folder of texts, packed into a .tar.gz

struct support_bundle {
    struct secrets **secrets; // of each camera
    int n_secrets;
    char folder[64]; // only for the user; removed at the end
    char name[160];  // of the folder in the archive
};

enum { COMMAND_BYTES_MAX = 16 << 20, LINE_BYTES = 64 << 10 };

// Returns 0 or a negative errno.
static int support_bundle_open(struct support_bundle *bundle, const char *name)
{
    const char *parent = getenv("TMPDIR");
    char path[PATH_MAX];
    *bundle = (struct support_bundle){0};
    if (!parent || strlen(parent) > sizeof bundle->folder - 32)
        parent = "/tmp";
    snprintf(bundle->folder, sizeof bundle->folder, "%s/framed-support.XXXXXX", parent);
    snprintf(bundle->name, sizeof bundle->name, "%s", name);
    if (!mkdtemp(bundle->folder)) {
        bundle->folder[0] = 0;
        return -errno;
    }
    snprintf(path, sizeof path, "%s/%s", bundle->folder, bundle->name);
    return mkdir(path, 0700) < 0 ? -errno : 0;
}

// Prints the text without the secrets of the configuration.
static void print_hidden(const struct support_bundle *bundle, FILE *to, const char *text)
{
    static char line[LINE_BYTES], hidden[LINE_BYTES];
    while (*text) {
        const size_t n = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        for (int i = 0; i < bundle->n_secrets; i++) {
            secrets_hide(bundle->secrets[i], hidden, sizeof hidden, line);
            memcpy(line, hidden, sizeof line);
        }
        fputs(expand_hide(hidden, sizeof hidden, line, true), to);
        text += n;
        if (*text)
            putc(*text++, to);
    }
}

// Adds a text, without secrets of configurations read by this process. Returns 0 or a negative
// errno.
static int support_bundle_put(const struct support_bundle *bundle, const char *file,
                              const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/%s", bundle->folder, bundle->name, file);
    FILE *to = fopen(path, "wex");
    int rc = to ? 0 : -errno;
    if (to)
        print_hidden(bundle, to, text);
    if (to && fclose(to) != 0)
        rc = -errno;
    return rc;
}

// Adds the output of a command line, or the reason for none: 16 MiB and 15 s at most.
static int support_bundle_run(const struct support_bundle *bundle, const char *file,
                              const char *command)
{
    char line[512];
    char *text = malloc(COMMAND_BYTES_MAX + 1);
    if (!text)
        return -ENOMEM;
    snprintf(line, sizeof line, "{ timeout 15 %s; } 2>&1 </dev/null", command);
    FILE *from = popen(line, "re");
    size_t n = from ? fread(text, 1, COMMAND_BYTES_MAX, from) : 0;
    if (from)
        pclose(from);
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] ? text[i] : '?';
    text[n] = 0;
    const int rc = support_bundle_put(bundle, file, text);
    free(text);
    return rc;
}

// Packs it; "-": to standard output. Returns 0 or a negative errno.
static int support_bundle_pack(const struct support_bundle *bundle, const char *path)
{
    char *const argv[] = {"tar",  "--owner=0", "--group=0",          "-C", (char *)bundle->folder,
                          "-czf", "-",         (char *)bundle->name, NULL};
    posix_spawn_file_actions_t actions;
    const bool to_output = strcmp(path, "-") == 0;
    const int fd = to_output
                       ? STDOUT_FILENO
                       : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int status = 0;
    pid_t pid;
    if (fd < 0)
        return -errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
    int rc = -posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (rc == 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            rc = -errno;
    if (rc == 0 && status != 0)
        rc = -EIO; // tar has printed the reason
    if (!to_output && close(fd) < 0 && rc == 0)
        rc = -errno;
    if (!to_output && rc < 0)
        unlink(path);
    return rc;
}

// Makes support_bundle_put hide the cameras' secrets, in all forms. Returns 0 or -ENOMEM.
static int support_bundle_learn(struct support_bundle *bundle, const struct config *config)
{
    int rc = 0;
    bundle->secrets = calloc((size_t)config->n_cameras + 1, sizeof(struct secrets *));
    for (int i = 0; rc == 0 && i < config->n_cameras; i++) {
        rc = bundle->secrets ? secrets_open(&bundle->secrets[i], &config->cameras[i]) : -ENOMEM;
        bundle->n_secrets += rc == 0;
    }
    return bundle->secrets ? rc : -ENOMEM;
}

// Removes its files and the two folders.
static void support_bundle_close(struct support_bundle *bundle)
{
    char path[PATH_MAX];
    for (int i = 0; i < bundle->n_secrets; i++)
        secrets_close(bundle->secrets[i]);
    free(bundle->secrets);
    if (!bundle->folder[0])
        return;
    snprintf(path, sizeof path, "%s/%s", bundle->folder, bundle->name);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
    rmdir(bundle->folder);
}

// --- the command

enum { TIMEOUT_S = 10 };

struct support {
    struct ask ask;
    const char *config; // the file
    const char *output; // NULL: NAME.tar.gz in the working directory
    bool known;         // the configuration has no mistakes, so all its secrets are known
    struct support_bundle bundle;
};

static void usage(FILE *to)
{
    fputs(
        "usage: framed support [OPTION]...\n"
        "Packs what helps to find a fault into a .tar.gz, without passwords: the configuration,\n"
        "the daemon's status, counters and last log lines, versions, and facts of the machine.\n\n"
        "  -c, --config FILE   the configuration (" DEFAULT_CONFIG ")\n"
        "  -o, --output FILE   where to (framed-support-HOST-TIME.tar.gz; - is standard output)\n"
        "  --socket PATH       the daemon's control socket, where that is not what FILE says\n",
        to);
}

// --- the configuration

static int put_config(struct support *support)
{
    struct config *config = NULL;
    struct unit *unit = NULL;
    char *mistakes = NULL, *effective = NULL;
    size_t size;
    FILE *errors = open_memstream(&mistakes, &size), *to = open_memstream(&effective, &size);
    int rc = errors && to ? unit_open(&unit, support->config) : -ENOMEM;
    const struct config_load_options options = {.unit = unit, .literals = true};
    if (rc == 0 && config_load_with(&config, support->config, &options, errors) == 0)
        config_print_effective(to, config);
    if (errors && fclose(errors) != 0)
        rc = -ENOMEM;
    if (to && fclose(to) != 0)
        rc = -ENOMEM;
    support->known = config;
    if (rc == 0 && config)
        rc = support_bundle_learn(&support->bundle, config);
    if (rc == 0 && config)
        rc = support_bundle_put(&support->bundle, "effective.yaml", effective);
    if (rc == 0)
        rc = support_bundle_put(&support->bundle, "check.txt",
                                *mistakes ? mistakes : "no mistakes\n");
    free(mistakes);
    free(effective);
    config_free(config);
    unit_close(unit);
    return rc;
}

// --- the daemon

static int put_daemon(struct support *support)
{
    static const char none[] = "no daemon answers\n";
    char why[512], *status = NULL, *metrics = NULL;
    struct ask *ask = &support->ask;
    int rc = ask_find(ask) == EXIT_OK ? 0 : -ENOENT;
    if (rc == 0)
        rc = ask_for(ask, "status", TIMEOUT_S, &status, why, sizeof why);
    if (rc == 0)
        ask_text(ask, "metrics", TIMEOUT_S, "metrics", "there are no counters", &metrics);
    rc = support_bundle_put(&support->bundle, "status.json", status ? status : none);
    if (rc == 0)
        rc = support_bundle_put(&support->bundle, "metrics.txt", metrics ? metrics : none);
    free(status);
    free(metrics);
    return rc;
}

// Writes the name of the configuration's unit, without characters special to a shell.
static void unit_name(const char *config, char *to, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", config);
    char *name = basename(path);
    name[strcspn(name, ".")] = 0;
    for (char *c = name; *c; c++)
        *c = isalnum((unsigned char)*c) || *c == '-' || *c == '_' ? *c : '_';
    snprintf(to, size, strcmp(name, "framed") == 0 ? "%.0sframed.service" : "framed@%.64s.service",
             name);
}

static int put_machine(struct support *support)
{
    char unit[96], journal[256], service[384], self[PATH_MAX], version[PATH_MAX + 32];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    unit_name(support->config, unit, sizeof unit);
    self[n > 0 ? n : 0] = 0;
    snprintf(version, sizeof version, "'%s' version", strchr(self, '\'') ? "framed" : self);
    snprintf(journal, sizeof journal, "journalctl --no-pager -o short-iso -n 5000 -u %s", unit);
    snprintf(service, sizeof service,
             "systemctl show %s -p "
             "ActiveState,SubState,Result,NRestarts,ExecMainStatus,ExecMainStartTimestamp,"
             "MemoryCurrent,CPUUsageNSec,TasksCurrent,LimitNOFILE,Restart,FragmentPath",
             unit);
    const struct {
        const char *file, *command;
    } facts[] = {
        {"version.txt", version},
        {"journal.txt", journal},
        {"service.txt", service},
        {"packages.txt",
         "dpkg-query -W 'framed*' 'libframed*' 'libav*' 'libswscale*' 'libuv1*' libmicrohttpd12 "
         "libcurl4 libmosquitto1 libjpeg62-turbo libssl3 libc6"},
        {"kernel.txt", "uname -srvm"},
        {"system.txt", "cat /etc/os-release"},
        {"processors.txt", "lscpu"},
        {"memory.txt", "cat /proc/meminfo"},
        {"pressure.txt", "tail -n +1 /proc/loadavg /proc/pressure/cpu /proc/pressure/memory "
                         "/proc/pressure/io"},
        {"disks.txt", "df -hT"},
        {"network.txt", "ip -s -brief link"},
        {"clock.txt", "timedatectl"},
        {"gpu.txt", "nvidia-smi"},
        {"render.txt", "ls -l /dev/dri"},
    };
    int rc = 0;
    if (!support->known)
        snprintf(journal, sizeof journal,
                 "echo 'left out: the configuration has mistakes, so its "
                 "secrets are not known'");
    for (size_t i = 0; rc == 0 && i < sizeof facts / sizeof *facts; i++)
        rc = support_bundle_run(&support->bundle, facts[i].file, facts[i].command);
    return rc;
}

// --- the command

static int make(struct support *support)
{
    char host[65] = "", name[128], when[32], output[160];
    const time_t now = time(NULL);
    struct tm utc;
    gethostname(host, sizeof host - 1);
    for (char *c = host; *c; c++)
        *c = isalnum((unsigned char)*c) || *c == '-' || *c == '.' ? *c : '_';
    strftime(when, sizeof when, "%Y%m%d-%H%M%S", gmtime_r(&now, &utc));
    snprintf(name, sizeof name, "framed-support-%s-%s", host, when);
    snprintf(output, sizeof output, "%s.tar.gz", name);
    umask(077);
    int rc = support_bundle_open(&support->bundle, name);
    if (rc == 0)
        rc = put_config(support);
    if (rc == 0)
        rc = put_daemon(support);
    if (rc == 0)
        rc = put_machine(support);
    const char *path = support->output ? support->output : output;
    if (rc == 0)
        rc = support_bundle_pack(&support->bundle, path);
    support_bundle_close(&support->bundle);
    if (rc < 0)
        fprintf(stderr, "framed support: %s: %s\n", path, strerror(-rc));
    else if (strcmp(path, "-") != 0)
        printf("%s: look it over before you pass it on\n", path);
    return rc < 0 ? EXIT_RUNTIME : EXIT_OK;
}

static int take(void *opaque, int option, const char *text)
{
    struct support *support = opaque;
    if (option == 'c')
        support->ask.config = support->config = text;
    else if (option == 'o')
        support->output = text;
    else
        support->ask.socket = text;
    return EXIT_OK;
}

int support_main(int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"output", required_argument, NULL, 'o'},
        {"socket", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    static const struct command_line line = {
        "framed support", ":c:o:h", options, usage, take, NULL};
    struct support support = {.ask = {.command = "support"}, .config = DEFAULT_CONFIG};
    bool help;
    int code = command_line_read(&line, argc, argv, &support, &help);
    if (code != EXIT_OK || help)
        return code;
    return command_line_finish("framed support", make(&support));
}
