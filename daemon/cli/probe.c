// framed probe URL: measures a camera's stream over some seconds, its decoder here and the cost,
// and prints the lines of a configuration for it.
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <libavcodec/avcodec.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/object.h"
#include "config/url.h"
#include "config/value.h"
#include "daemon/base/log.h"
#include "daemon/base/process.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/stream_probe.h"
#include "daemon/source/libav_log.h"

// --- lines of a configuration

struct camera_lines {
    const char *name, *url;
    const char *transport;     // NULL: the default
    int width, height;         // of its pictures
    const char *preset, *size; // of its output; NULL: the defaults
    // Prints the URL's secrets unchanged. Otherwise they become ${NAME_USER} and so on, by the
    // camera's name, and a comment names their source.
    bool clear;
};

// Prints "CAMERA_2_PASSWORD" for "camera-2".
static void print_variable(FILE *to, const char *camera, const char *what)
{
    if (isdigit((unsigned char)*camera))
        putc('_', to);
    for (const char *p = camera; *p; p++)
        putc(isalnum((unsigned char)*p) ? toupper((unsigned char)*p) : '_', to);
    fprintf(to, "_%s", what);
}

enum { SHORTEST_SECRET = 6 }; // bytes of a parameter

// Returns true if the query may contain a secret: "channel=1&subtype=0" has none.
static bool query_is_secret(const char *query)
{
    while ((query = strchr(query, '=')))
        if (strcspn(++query, "&;#") >= SHORTEST_SECRET)
            return true;
    return false;
}

// Prints where the variable for the URL's first secret comes from.
static void print_hint(FILE *to, const struct camera_lines *lines)
{
    size_t length;
    const char *login = config_url_login(lines->url, &length);
    if (lines->clear || (!login && !query_is_secret(config_url_query(lines->url))))
        return;
    fputs("    # ${...} come from the environment, or from credentials of the service:\n"
          "    # LoadCredential=",
          to);
    print_variable(to, lines->name, login ? "PASSWORD" : "SECRET");
    fputs(":FILE by systemctl edit framed\n", to);
}

// Doubles each dollar sign, so that it stands for itself.
static void print_plain(FILE *to, const char *from, const char *end)
{
    for (; from < end; from++)
        fprintf(to, *from == '$' ? "$$" : "%c", *from);
}

// Returns the URL for the lines, without quotes. The caller frees it; NULL: no memory.
static char *url_of(const struct camera_lines *lines)
{
    const char *p = lines->url;
    char *text = NULL;
    size_t size, length;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    const char *login = config_url_login(p, &length), *query = config_url_query(p);
    if (login && !lines->clear) {
        print_plain(to, p, login);
        fputs("${", to);
        print_variable(to, lines->name, "USER");
        if (memchr(login, ':', length)) {
            fputs("}:${", to);
            print_variable(to, lines->name, "PASSWORD");
        }
        putc('}', to);
        p = login + length;
    }
    if (query_is_secret(query) && !lines->clear) {
        print_plain(to, p, query + 1);
        fputs("${", to);
        print_variable(to, lines->name, "SECRET");
        putc('}', to);
        p = query + strlen(query);
    }
    print_plain(to, p, p + strlen(p));
    if (fclose(to) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

// Adds double quotes if a plain scalar might be read as something else.
static void print_scalar(FILE *to, const char *text)
{
    bool quoted = !isalnum((unsigned char)*text) && *text != '/';
    for (const char *p = text; *p; p++)
        quoted |= !isalnum((unsigned char)*p) && !strchr("-._~:/?=&;%+@${}!()", *p);
    quoted |= *text && text[strlen(text) - 1] == ':';
    if (!quoted) {
        fputs(text, to);
        return;
    }
    putc('"', to);
    for (const char *p = text; *p; p++)
        if (iscntrl((unsigned char)*p))
            fprintf(to, "\\x%02x", (unsigned char)*p);
        else
            fprintf(to, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    putc('"', to);
}

// Returns text that the caller frees; NULL: no memory.
static char *camera_lines_print(const struct camera_lines *lines)
{
    const char *folder = getenv("RUNTIME_DIRECTORY"); // of the daemon that requests the lines
    char *text = NULL, *url = url_of(lines);
    size_t size;
    FILE *to = url ? open_memstream(&text, &size) : NULL;
    if (to) {
        fprintf(to, "cameras:\n  %s:\n", lines->name);
        print_hint(to, lines);
        fputs("    url: ", to);
        print_scalar(to, url);
        putc('\n', to);
        if (lines->transport && strcmp(lines->transport, "tcp") != 0)
            fprintf(to, "    transport: %s\n", lines->transport);
        if (lines->width > 1920 || lines->height > 1080)
            fprintf(to, "    picture: %dx%d\n", lines->width, lines->height);
        fputs("    outputs:\n      detector:\n", to);
        if (lines->preset)
            fprintf(to, "        preset: %s\n", lines->preset);
        if (lines->size || !lines->preset)
            fprintf(to, "        size: %s\n", lines->size ? lines->size : "640x640");
        fprintf(to, "        sink: unix:%s/%s-detector.sock\n",
                folder && *folder == '/' && !strchr(folder, ':') ? folder : "/run/framed",
                lines->name);
        if (fclose(to) != 0) {
            free(text);
            text = NULL;
        }
    }
    free(url);
    return text;
}

// --- the report

static const double MIB = 1 << 20;

// --- for people

static void print_stream(const struct stream_probe *probe, FILE *to)
{
    const AVCodecParameters *parameters = probe->demux->parameters;
    const char *profile = avcodec_profile_name(parameters->codec_id, parameters->profile);
    const double seconds = stream_probe_seconds(probe);
    char stream[DEMUX_DESCRIPTION_MAX];
    fprintf(to, "stream         %s%s%s\n", demux_describe(probe->demux, stream),
            profile ? ", profile " : "", profile ? profile : "");
    fprintf(to, "picture        %dx%d\n", probe->width, probe->height);
    if (seconds > 0)
        fprintf(to, "bit rate       %.2f Mbit/s, %.4g pictures/s\n",
                (double)probe->bytes * 8 / 1e6 / seconds, stream_probe_rate(probe));
    if (probe->key_distance_ns > 0)
        fprintf(to, "keyframes      every %.3g s\n", (double)probe->key_distance_ns / 1e9);
    else
        fprintf(to, "keyframes      %s\n",
                probe->keyframes ? "one in this time" : "none in this time");
    if (probe->b_frames > 0)
        fprintf(to, "B-frames       up to %d in a row\n", probe->b_frames);
    else
        fputs("B-frames       none\n", to);
}

static void print_network(const struct stream_probe *probe, FILE *to)
{
    const struct demux_network network = probe->demux->network;
    if (network.transport) {
        fprintf(to, "packets        %llu, %llu lost, %llu late, %llu foreign\n",
                (unsigned long long)network.packets, (unsigned long long)network.lost,
                (unsigned long long)network.late, (unsigned long long)network.foreign);
        fprintf(to, "arrival        packets of a picture within %.1f ms; it ends by %s\n",
                (double)network.arrival_ns / 1e6, network.picture_end);
    }
    if (demux_is_live(probe->camera.url))
        fprintf(to, "clock          %s\n",
                probe->clock ? "the camera's, by sender reports"
                             : "none came: time of arrival instead");
}

static void print_cost(const struct stream_probe *probe, const struct probe_cost *cost, FILE *to)
{
    fprintf(to,
            "decoder        %s: %.2f ms of one core a picture, %.1f %% of a core at this rate\n",
            decoder_describe(probe->decoder), stream_probe_decode_ms(probe), cost->cores * 100);
    fprintf(to,
            "pictures       %lld, %lld damaged or lost; the first %.0f ms after connecting began\n",
            (long long)probe->pictures, (long long)probe->damaged,
            (double)(probe->shown_ns - probe->begun_ns) / 1e6);
    fprintf(to, "memory         %.1f MiB", (double)cost->memory.pinned / MIB);
    if (cost->memory.device > 0)
        fprintf(to, ", and %.1f MiB of the GPU's", (double)cost->memory.device / MIB);
    fprintf(to, "\nfits           %s%s\n", cost->fits ? "yes" : "no: ", cost->why);
}

static void probe_report_print(const struct stream_probe *probe, const struct probe_cost *cost,
                               const char *lines, FILE *to)
{
    print_stream(probe, to);
    print_network(probe, to);
    print_cost(probe, cost, to);
    fprintf(to, "\n%s", lines);
}

// --- as JSON

static json_t *known(double value)
{
    return value >= 0 ? json_real(value) : json_null();
}

static void add_preset_key(void *opaque, const char *key, const char *const text[], int n)
{
    json_t *keys = opaque, *list = json_array();
    if (n == 1) {
        json_decref(list);
        json_object_set_new(keys, key, json_string(text[0]));
        return;
    }
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_string(text[i]));
    json_object_set_new(keys, key, list);
}

static json_t *presets_json(void)
{
    const struct config_choice *choice = table_find(&output_table, "preset")->choices;
    json_t *list = json_array();
    for (; list && choice->name; choice++) {
        json_t *keys = json_object();
        preset_each((enum preset)choice->value, add_preset_key, keys);
        json_array_append_new(list, json_pack("{s:s, s:o}", "name", choice->name, "keys", keys));
    }
    return list;
}

static json_t *network_json(const struct stream_probe *probe)
{
    const struct demux_network network = probe->demux->network;
    if (!network.transport)
        return json_null();
    return json_pack("{s:s, s:I, s:I, s:I, s:f}", "transport", network.transport, "packets",
                     (json_int_t)network.packets, "lost", (json_int_t)network.lost, "late",
                     (json_int_t)network.late, "arrival_ms", (double)network.arrival_ns / 1e6);
}

static json_t *stream_json(const struct stream_probe *probe)
{
    const AVCodecParameters *parameters = probe->demux->parameters;
    const double seconds = stream_probe_seconds(probe);
    return json_pack(
        "{s:s, s:s?, s:i, s:i, s:f, s:o, s:o, s:i, s:b, s:f, s:I, s:I, s:f, s:o}", "codec",
        avcodec_get_name(parameters->codec_id), "profile",
        avcodec_profile_name(parameters->codec_id, parameters->profile), "width", probe->width,
        "height", probe->height, "fps", stream_probe_rate(probe), "bits_per_second",
        known(seconds > 0 ? (double)probe->bytes * 8 / seconds : -1), "keyframe_seconds",
        known(probe->key_distance_ns > 0 ? (double)probe->key_distance_ns / 1e9 : -1), "b_frames",
        probe->b_frames, "clock", probe->clock, "seconds", seconds, "pictures",
        (json_int_t)probe->pictures, "damaged", (json_int_t)probe->damaged, "first_picture_ms",
        (double)(probe->shown_ns - probe->begun_ns) / 1e6, "network", network_json(probe));
}

// "nvdec" is null if this machine has none.
static json_t *cost_json(const struct stream_probe *probe, const struct probe_cost *cost)
{
    return json_pack(
        "{s:s, s:o, s:f, s:f, s:o, s:f, s:f, s:o, s:f, s:b, s:s}", "decoder",
        decoder_describe(probe->decoder), "nvdec",
        probe->lease.nvdec ? json_boolean(probe_uses_nvdec(probe)) : json_null(), "decode_ms",
        stream_probe_decode_ms(probe), "cores", cost->cores, "cores_free", known(cost->cores_free),
        "cores_all", cost->cores_all, "memory_mib", (double)cost->memory.pinned / MIB,
        "memory_free_mib", known(cost->memory_free >= 0 ? (double)cost->memory_free / MIB : -1),
        "gpu_memory_mib", (double)cost->memory.device / MIB, "fits", cost->fits, "why", cost->why);
}

static int print_json(json_t *object, FILE *to)
{
    char *text = object ? json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(object);
    if (!text)
        return -ENOMEM;
    fprintf(to, "%s\n", text);
    free(text);
    return 0;
}

// Prints one object, which includes the keys that presets set. Returns 0 or -ENOMEM.
static int probe_report_print_json(const struct stream_probe *probe, const struct probe_cost *cost,
                                   const char *lines, FILE *to)
{
    return print_json(json_pack("{s:o, s:o, s:s, s:o}", "stream", stream_json(probe), "cost",
                                cost_json(probe, cost), "yaml", lines, "presets", presets_json()),
                      to);
}

// Prints {"error": ...}; `login`: the camera refused or requires a password. Returns 0 or -ENOMEM.
static int probe_report_print_error(const char *sentence, bool login, FILE *to)
{
    return print_json(json_pack("{s:s, s:b}", "error", sentence, "wants_login", login), to);
}

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
    const struct demux_network network = probe->demux->network;
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
