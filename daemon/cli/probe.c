// framed probe URL: measures a camera's stream over some seconds, its decoder here and the cost,
// and prints the lines of a configuration for it.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/object.h"
#include "config/url.h"
#include "config/value.h"
#include "daemon/base/log.h"
#include "daemon/base/process.h"
#include "daemon/cli/camera_lines.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/password_file.h"
#include "daemon/cli/probe_report.h"
#include "daemon/input/libav_log.h"

enum { SECONDS = 3, SECONDS_MAX = 3600, URL_MAX = 16384 };

struct probe_options {
    const char *url; // "-": on standard input, hidden from other users of the machine
    const char *user, *password_file;
    double seconds;
    bool json;
    struct camera_lines lines; // name, preset, size, clear
};

// --- printing

static int refuse(const struct probe_options *options, int rc, const char *sentence)
{
    if (!options->json || probe_report_print_error(sentence, rc == -EACCES, stdout) < 0)
        fprintf(stderr, "framed probe: %s\n", sentence);
    return EXIT_RUNTIME;
}

// Prints the report with the lines of a configuration, which are parsed as from a file.
static int report(const struct probe_options *options, const struct stream_probe *probe)
{
    struct demux_network network;
    demux_network(probe->demux, &network);
    struct camera_lines lines = options->lines;
    lines.url = probe->camera.url;
    lines.transport = network.transport;
    lines.width = probe->width;
    lines.height = probe->height;
    char *shown = camera_lines_print(&lines);
    lines.clear = true;
    char *whole = camera_lines_print(&lines);
    struct probe_cost cost;
    int rc = shown && whole ? probe_cost_measure(&cost, probe, whole, stderr) : -ENOMEM;
    if (rc == 0 && options->json)
        rc = probe_report_print_json(probe, &cost, shown, stdout);
    else if (rc == 0)
        probe_report_print(probe, &cost, shown, stdout);
    if (whole)
        explicit_bzero(whole, strlen(whole));
    free(whole);
    free(shown);
    return rc;
}

static int probe_url(const struct probe_options *options, const char *url)
{
    struct stream_probe *probe = calloc(1, sizeof *probe);
    if (!probe)
        return refuse(options, -ENOMEM, strerror(ENOMEM));
    int rc = stream_probe_run(probe, url, options->seconds);
    int code = EXIT_OK;
    if (rc < 0)
        code = refuse(options, rc, probe->why);
    else if ((rc = report(options, probe)) < 0)
        code = refuse(options, rc, strerror(-rc));
    stream_probe_close(probe);
    free(probe);
    return code;
}

// --- the command line

static void usage(FILE *to)
{
    fputs(
        "usage: framed probe URL [OPTION]...\n"
        "Plays a camera or a file for some seconds, and prints what it sends, what decodes it\n"
        "here and at what cost, and the lines of a configuration for it. URL - is the first line\n"
        "of standard input.\n\n"
        "  --seconds N            how long to measure (3)\n"
        "  --user USER            in place of a user in the URL\n"
        "  --password-file FILE   its first line is the password; - is standard input\n"
        "  --name NAME            of the camera in the lines (camera)\n"
        "  --preset PRESET        of its output\n"
        "  --size WxH             of its output (640x640)\n"
        "  --clear                the lines have the password, not a variable\n"
        "  --json                 all as JSON\n",
        to);
}

static bool is_name(const char *text)
{
    const size_t n =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return n > 0 && !text[n] && n <= (size_t)camera_table.name_max;
}

// Parses a key of the output. A refusal lists the allowed values.
static int take_key(const char **ret, const char *option, const char *key, const char *text)
{
    char allowed[256], what[300];
    struct output_config output = {0};
    const struct config_row *row = table_find(&output_table, key);
    const char *wrong;
    *ret = text;
    if (value_parse(row, &output, &text, 1, &wrong) == 0)
        return EXIT_OK;
    snprintf(what, sizeof what, "takes %s", row_allowed(row, allowed, sizeof allowed));
    return command_line_refuse("framed probe", option, what);
}

static int take_seconds(struct probe_options *options, const char *text)
{
    char *end;
    options->seconds = strtod(text, &end);
    if (*end || end == text || !(options->seconds >= 0.1 && options->seconds <= SECONDS_MAX))
        return command_line_refuse("framed probe", "--seconds", "takes a number from 0.1 to 3600");
    return EXIT_OK;
}

static int take(void *opaque, int option, const char *text)
{
    struct probe_options *options = opaque;
    switch (option) {
    case 'u':
        options->user = text;
        break;
    case 'w':
        options->password_file = text;
        break;
    case 'n':
        options->lines.name = text;
        if (!is_name(text))
            return command_line_refuse("framed probe", "--name", "takes letters, digits, _ and -");
        break;
    case 'p':
        return take_key(&options->lines.preset, "--preset", "preset", text);
    case 'z':
        return take_key(&options->lines.size, "--size", "size", text);
    case 'c':
        options->lines.clear = true;
        break;
    case 'j':
        options->json = true;
        break;
    default:
        return take_seconds(options, text);
    }
    return EXIT_OK;
}

static int take_url(void *opaque, const char *text)
{
    struct probe_options *options = opaque;
    if (options->url)
        return command_line_refuse("framed probe", text, "takes no further argument");
    options->url = text;
    return EXIT_OK;
}

// Adds the options' user and password to the URL. The caller frees *ret.
static int complete_url(const struct probe_options *options, char **ret)
{
    char password[PASSWORD_MAX], line[URL_MAX] = "";
    const char *url = options->url;
    int code = EXIT_OK;
    if (url && strcmp(url, "-") == 0) {
        url = fgets(line, sizeof line, stdin);
        line[strcspn(line, "\r\n")] = 0;
    }
    const char *mistake = url && *url ? config_url_mistake(url) : "is missing";
    if (mistake) {
        fprintf(stderr, "framed probe: the URL %s\n", mistake);
        return EXIT_USAGE;
    }
    if (!options->user != !options->password_file)
        return command_line_refuse("framed probe", options->user ? "--user" : "--password-file",
                                   options->user ? "wants --password-file beside it"
                                                 : "wants --user beside it");
    if (options->user)
        code = password_file_read("framed probe", options->password_file, password);
    if (code == EXIT_OK && !options->user && !(*ret = strdup(url)))
        code = EXIT_RUNTIME;
    if (code == EXIT_OK && options->user &&
        config_url_with_login(ret, url, options->user, password) < 0)
        code = command_line_refuse("framed probe", "--user", "wants a URL with a host");
    explicit_bzero(password, sizeof password);
    explicit_bzero(line, sizeof line);
    return code;
}

int probe_main(int argc, char **argv)
{
    static const struct option known[] = {
        {"seconds", required_argument, NULL, 's'},
        {"user", required_argument, NULL, 'u'},
        {"password-file", required_argument, NULL, 'w'},
        {"name", required_argument, NULL, 'n'},
        {"preset", required_argument, NULL, 'p'},
        {"size", required_argument, NULL, 'z'},
        {"clear", no_argument, NULL, 'c'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    static const struct command_line line = {"framed probe", ":h", known, usage, take, take_url};
    struct probe_options options = {.seconds = SECONDS, .lines = {.name = "camera"}};
    char *url = NULL;
    bool help = false;
    int code = command_line_read(&line, argc, argv, &options, &help);
    if (code != EXIT_OK || help)
        return code;
    code = complete_url(&options, &url);
    if (code == EXIT_OK) {
        log_open(LOG_LEVEL_WARNING);
        libav_log_open();
        code = probe_url(&options, url);
    }
    free(url);
    return code;
}
