// framed discover: finds the ONVIF cameras in this machine's networks, and their streams.
#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/base/process.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/table.h"
#include "daemon/onvif/onvif.h"

// --- the password

int password_file_read(const char *command, const char *path, char to[PASSWORD_MAX])
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!file)
        return command_line_refuse(command, "--password-file", strerror(errno));
    errno = 0;
    const bool any = fgets(to, PASSWORD_MAX, file);
    const char *wrong = any                     ? NULL
                        : ferror(file) && errno ? strerror(errno)
                                                : "names a file without a password";
    if (any && strncmp(to, "\xef\xbb\xbf", 3) == 0) // a byte order mark
        memmove(to, to + 3, strlen(to + 3) + 1);
    const size_t length = any ? strcspn(to, "\r\n") : 0;
    if (any && !to[length] && !feof(file))
        wrong = "names a file whose first line is longer than 4094 bytes";
    else if (any && length == 0)
        wrong = "names a file without a password";
    else if (any)
        to[length] = 0;
    if (file != stdin)
        fclose(file);
    return wrong ? command_line_refuse(command, "--password-file", wrong) : EXIT_OK;
}

// --- the search

enum { CAMERAS_MAX = 64, ADDRESSES_MAX = 16, SECONDS_MAX = 60 };

static const double SECONDS = 2;

struct discover_options {
    const char *user, *password_file;
    char password[PASSWORD_MAX];
    double seconds;
    bool json;
    const char *addresses[ADDRESSES_MAX]; // cameras to query, as in the list
    int n_addresses;                      // 0: all
};

// A camera that answered. Its own thread queries it while the search continues.
struct asked {
    const struct discover_options *options;
    struct ws_match match;
    struct onvif_camera camera;
    pthread_t thread;
    bool threaded;
};

struct discovery {
    const struct discover_options *options;
    struct asked cameras[CAMERAS_MAX];
    int n, more; // more: answered, but not queried
};

static void *ask_camera(void *opaque)
{
    struct asked *asked = opaque;
    onvif_camera_ask(&asked->camera, &asked->match, asked->options->user, asked->options->password);
    return NULL;
}

static bool is_named(const struct discover_options *options, const char *host)
{
    for (int i = 0; i < options->n_addresses; i++)
        if (strcasecmp(options->addresses[i], host) == 0)
            return true;
    return options->n_addresses == 0;
}

static void found(void *opaque, const struct ws_match *match)
{
    struct discovery *discovery = opaque;
    if (!is_named(discovery->options, match->host))
        return;
    if (discovery->n == CAMERAS_MAX) {
        discovery->more++;
        return;
    }
    struct asked *asked = &discovery->cameras[discovery->n++];
    asked->options = discovery->options;
    asked->match = *match;
    asked->threaded = pthread_create(&asked->thread, NULL, ask_camera, asked) == 0;
}

static void wait_for_answers(struct discovery *discovery)
{
    for (int i = 0; i < discovery->n; i++) {
        struct asked *asked = &discovery->cameras[i];
        if (asked->threaded)
            pthread_join(asked->thread, NULL);
        else
            ask_camera(asked);
    }
}

// --- printing

static void print_table(const struct discovery *discovery)
{
    struct table table = {.right = "lllr"};
    for (int i = 0; i < discovery->n; i++) {
        const struct onvif_camera *camera = &discovery->cameras[i].camera;
        if (i == 0) {
            table_begin_row(&table);
            static const char *const heads[] = {"ADDRESS", "NAME", "MODEL", "PICTURE", "URL"};
            for (size_t h = 0; h < sizeof heads / sizeof *heads; h++)
                table_cell(&table, "%s", heads[h]);
        }
        for (int s = 0; s < camera->n_streams || s == 0; s++) {
            const struct onvif_stream *stream = &camera->streams[s];
            table_begin_row(&table);
            table_cell(&table, "%s", s == 0 ? camera->host : "");
            table_cell(&table, "%s", s == 0 ? camera->name : "");
            table_cell(&table, "%s", s == 0 ? camera->model : "");
            if (stream->width > 0)
                table_cell(&table, "%dx%d", stream->width, stream->height);
            else
                table_cell(&table, "%s", "");
            table_cell(&table, "%s%s%s%s", stream->url, *camera->error ? "(" : "", camera->error,
                       *camera->error ? ")" : "");
        }
    }
    table_print(&table, stdout);
    table_free(&table);
}

static json_t *stream_json(const struct onvif_stream *stream)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:i}", "url", stream->url, "name", stream->name,
                     "codec", stream->codec, "width", stream->width, "height", stream->height,
                     "fps", stream->fps);
}

static json_t *camera_json(const struct onvif_camera *camera)
{
    json_t *streams = json_array();
    for (int i = 0; streams && i < camera->n_streams; i++)
        json_array_append_new(streams, stream_json(&camera->streams[i]));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:b, s:s}", "address", camera->host, "name",
                     camera->name, "manufacturer", camera->manufacturer, "model", camera->model,
                     "firmware", camera->firmware, "streams", streams, "wants_login",
                     camera->wants_login, "error", camera->error);
}

static int print_json(const struct discovery *discovery)
{
    json_t *list = json_array();
    int rc = list ? 0 : -1;
    for (int i = 0; rc == 0 && i < discovery->n; i++)
        rc = json_array_append_new(list, camera_json(&discovery->cameras[i].camera));
    char *text = rc == 0 ? json_dumps(list, JSON_INDENT(1)) : NULL;
    json_decref(list);
    if (!text) {
        fprintf(stderr, "framed discover: %s\n", strerror(ENOMEM));
        return EXIT_RUNTIME;
    }
    puts(text);
    free(text);
    return EXIT_OK;
}

static int discover(const struct discover_options *options)
{
    struct discovery *discovery = calloc(1, sizeof *discovery);
    int rc = discovery && curl_global_init(CURL_GLOBAL_DEFAULT) == 0 ? 0 : -ENOMEM;
    int code = EXIT_RUNTIME;
    if (rc == 0) {
        xmlInitParser();
        discovery->options = options;
        rc = ws_discovery_run(options->seconds, found, discovery);
        wait_for_answers(discovery);
        curl_global_cleanup();
    }
    if (rc < 0) {
        if (options->json)
            puts("{\"error\": \"there is no network to look in\"}");
        fprintf(stderr, "framed discover: no network to look in: %s\n", strerror(-rc));
    } else {
        code = EXIT_OK;
        if (options->json)
            code = print_json(discovery);
        else
            print_table(discovery);
        if (discovery->n == 0)
            fprintf(stderr, "framed discover: no camera answered%s within %g s\n",
                    options->n_addresses ? " at that address" : "", options->seconds);
        if (discovery->more > 0)
            fprintf(stderr, "framed discover: %d more answered\n", discovery->more);
    }
    free(discovery);
    return code;
}

// --- the command line

static void usage(FILE *to)
{
    fputs("usage: framed discover [OPTION]... [ADDRESS]...\n"
          "Looks for ONVIF cameras in the networks of this box, and prints what they are and the\n"
          "URLs of their streams. With ADDRESSes of the list it asks these cameras alone.\n\n"
          "  --user USER            logs in to the cameras that are named, once\n"
          "  --password-file FILE   its first line is the password; - is standard input\n"
          "  --seconds N            how long to wait for answers (2)\n"
          "  --json                 as JSON\n",
          to);
}

static int take(void *opaque, int option, const char *text)
{
    struct discover_options *options = opaque;
    char *end;
    switch (option) {
    case 'u':
        options->user = text;
        break;
    case 'p':
        options->password_file = text;
        break;
    case 'j':
        options->json = true;
        break;
    default:
        options->seconds = strtod(text, &end);
        if (*end || end == text || !(options->seconds >= 0.1 && options->seconds <= SECONDS_MAX))
            return command_line_refuse("framed discover", "--seconds",
                                       "takes a number from 0.1 to 60");
    }
    return EXIT_OK;
}

static int take_address(void *opaque, const char *text)
{
    struct discover_options *options = opaque;
    struct in6_addr address;
    char host[WS_DISCOVERY_HOST_MAX];
    const size_t n = strcspn(text, "%");
    snprintf(host, sizeof host, "%.*s", (int)n, text);
    if (strlen(text) >= sizeof host ||
        (inet_pton(AF_INET, text, &address) != 1 && inet_pton(AF_INET6, host, &address) != 1))
        return command_line_refuse("framed discover", text,
                                   "is not an address as `framed discover` lists them");
    if (options->n_addresses == ADDRESSES_MAX)
        return command_line_refuse("framed discover", text, "is one address too many (up to 16)");
    options->addresses[options->n_addresses++] = text;
    return EXIT_OK;
}

int discover_main(int argc, char **argv)
{
    static const struct option known[] = {
        {"user", required_argument, NULL, 'u'},    {"password-file", required_argument, NULL, 'p'},
        {"seconds", required_argument, NULL, 's'}, {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},          {0},
    };
    static const struct command_line line = {"framed discover", ":h", known, usage, take,
                                             take_address};
    struct discover_options options = {.seconds = SECONDS};
    bool help = false;
    int code = command_line_read(&line, argc, argv, &options, &help);
    if (code != EXIT_OK || help)
        return code;
    if (!options.user != !options.password_file)
        return command_line_refuse("framed discover", options.user ? "--user" : "--password-file",
                                   options.user ? "wants --password-file beside it"
                                                : "wants --user beside it");
    if (options.user)
        code = password_file_read("framed discover", options.password_file, options.password);
    if (code == EXIT_OK && options.user && options.n_addresses == 0)
        code = command_line_refuse("framed discover", "--user",
                                   "needs the ADDRESS of each camera to log in to (`framed "
                                   "discover` lists them)");
    return code == EXIT_OK ? discover(&options) : code;
}
