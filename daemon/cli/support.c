#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "config/expand.h"
#include "config/load.h"
#include "config/print.h"
#include "daemon/base/process.h"
#include "daemon/cli/ask.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/support_bundle.h"

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
