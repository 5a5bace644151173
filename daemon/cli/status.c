#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/process.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/table.h"

// Keys that a newer or older daemon does not report read as empty or 0.
static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static double number_at(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static json_int_t count_at(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

// --- the daemon

static const char *span(double seconds, char *to, size_t size)
{
    long long s = (long long)seconds;
    if (s < 60)
        snprintf(to, size, "%lld s", s);
    else if (s < 3600)
        snprintf(to, size, "%lldm %02llds", s / 60, s % 60);
    else if (s < 86400)
        snprintf(to, size, "%lldh %02lldm", s / 3600, s / 60 % 60);
    else
        snprintf(to, size, "%lldd %02lldh", s / 86400, s / 3600 % 24);
    return to;
}

static void print_refusal(const json_t *reload, FILE *to)
{
    if (json_is_false(json_object_get(reload, "ok")))
        fprintf(to, "the last reload was refused: %s\n", text_at(reload, "error"));
}

static void print_daemon(const json_t *status, FILE *to)
{
    const json_t *process = json_object_get(status, "process");
    const json_t *backend = json_object_get(status, "backend");
    const json_t *all = json_object_get(json_object_get(status, "bound"), "cpu");
    const char *description = text_at(backend, "description");
    char up[32];
    fprintf(to, "framed %s, pid %lld, up %s, %s\n", text_at(status, "version"),
            (long long)count_at(process, "pid"), span(number_at(status, "uptime_s"), up, sizeof up),
            text_at(json_object_get(status, "config"), "path"));
    print_refusal(json_object_get(json_object_get(status, "config"), "last_reload"), to);
    fprintf(to, "backend %s%s%s%s, %.2f of %g cores", text_at(backend, "name"),
            *description ? " (" : "", description, *description ? ")" : "",
            number_at(process, "cpu_cores"), number_at(process, "cpu_cores_allowed"));
    if (json_is_number(all))
        fprintf(to, " (%.2f with all else)", json_number_value(all));
    fprintf(to, ", %.0f MiB resident\n", number_at(process, "resident_bytes") / (1 << 20));
}

// Prints ", NVDEC 41 %" if the device reports it.
static void print_share(const json_t *device, const char *key, const char *name, FILE *to)
{
    const json_t *share = json_object_get(device, key);
    if (json_is_number(share))
        fprintf(to, ", %s %.0f %%", name, 100 * json_number_value(share));
}

static bool is_gpu(const json_t *device)
{
    return json_is_integer(json_object_get(device, "number"));
}

static size_t count_gpus(const json_t *devices)
{
    const json_t *device;
    size_t i, gpus = 0;
    json_array_foreach((json_t *)devices, i, device)
    {
        gpus += is_gpu(device);
    }
    return gpus;
}

static void print_gpus(const json_t *devices, FILE *to)
{
    const json_t *device;
    size_t i;
    json_array_foreach((json_t *)devices, i, device)
    {
        const json_t *limit = json_object_get(device, "memory_limit_bytes");
        const bool works = json_is_true(json_object_get(device, "works"));
        if (!is_gpu(device))
            continue;
        fprintf(to, "GPU %lld: %s, %lld cameras", (long long)count_at(device, "number"),
                works ? text_at(device, "description") : "failed",
                (long long)count_at(device, "cameras"));
        print_share(device, "nvdec", "NVDEC", to);
        print_share(device, "upload", "upload", to);
        print_share(device, "kernel", "kernels", to);
        print_share(device, "download", "download", to);
        fprintf(to, ", %.0f", number_at(device, "memory_bytes") / (1 << 20));
        if (json_is_number(limit))
            fprintf(to, " of %.0f", json_number_value(limit) / (1 << 20));
        fputs(" MiB\n", to);
    }
}

// The meaning of each bottleneck; a newer daemon may report others.
static const struct {
    const char *stage, *text;
} bottlenecks[] = {
    {"network", "not limited: the cameras deliver no more"},
    {"cpu", "limited by the processors"},
    {"decoder", "limited by decoding"},
    {"upload", "limited by copies to the GPU"},
    {"kernel", "limited by the kernels"},
    {"download", "limited by copies from the GPU"},
    {"client", "limited by slow clients"},
};

static const char *describe_bottleneck(const char *stage)
{
    for (size_t i = 0; i < sizeof bottlenecks / sizeof bottlenecks[0]; i++)
        if (strcmp(bottlenecks[i].stage, stage) == 0)
            return bottlenecks[i].text;
    return "bottleneck not known";
}

static void print_bottleneck(const json_t *bottleneck, bool several, FILE *to)
{
    const json_t *share = json_object_get(bottleneck, "share");
    const json_t *more = json_object_get(bottleneck, "cameras_more");
    const json_t *device = json_object_get(bottleneck, "device");
    const char *end = text_at(bottleneck, "ends_first");
    if (strcmp(end, "device_memory") == 0)
        end = "device memory";
    fputs(describe_bottleneck(text_at(bottleneck, "leg")), to);
    if (json_is_integer(device) && several)
        fprintf(to, " of GPU %lld", (long long)json_integer_value(device));
    if (json_is_number(share))
        fprintf(to, " (%.0f %%)", 100 * json_number_value(share));
    if (json_is_integer(more) && json_integer_value(more) == 0)
        fprintf(to, "; no room for more cameras like these: %s ends first", end);
    else if (json_is_integer(more))
        fprintf(to, "; room for about %lld more like these: %s ends first",
                (long long)json_integer_value(more), end);
    else
        fputs("; room for more cameras like these is unknown at this load", to);
    putc('\n', to);
}

static void print_unfinished(const json_t *unfinished, FILE *to)
{
    const json_int_t count = count_at(unfinished, "count");
    const json_t *file, *files = json_object_get(unfinished, "files");
    char age[32];
    size_t i;
    if (count == 0)
        return;
    fprintf(to, "recordings that no output will finish: %lld, %.1f MiB\n", (long long)count,
            number_at(unfinished, "bytes") / (1 << 20));
    json_array_foreach((json_t *)files, i, file)
    {
        fprintf(to, "  %s (%.1f MiB, written %s ago)\n", text_at(file, "path"),
                number_at(file, "bytes") / (1 << 20),
                span(number_at(file, "age_s"), age, sizeof age));
    }
    if ((size_t)count > json_array_size(files))
        fprintf(to, "  and %lld more\n", (long long)count - (long long)json_array_size(files));
}

// --- cameras and outputs

static void add_complaint(struct table *table, const json_t *owner)
{
    const json_t *complaint = json_object_get(owner, "last_error");
    char age[32];
    if (json_is_object(complaint))
        table_note(table, "    %s ago: %s", span(number_at(complaint, "age_s"), age, sizeof age),
                   text_at(complaint, "text"));
}

// Adds lasting alerts, and the availability over a week if it was not complete.
static void add_availability(struct table *table, const json_t *camera)
{
    const json_t *availability = json_object_get(camera, "availability"), *alert;
    const double share = number_at(availability, "share");
    char known[32], alerts[128] = "";
    size_t i, used = 0;
    json_array_foreach((json_t *)json_object_get(camera, "alerts"), i, alert)
    {
        used += (size_t)snprintf(alerts + used, sizeof alerts - used, "%s%.20s",
                                 used ? ", " : "alert: ", json_string_value(alert));
    }
    span(number_at(availability, "known_s"), known, sizeof known);
    if (json_is_object(availability) && (share < 0.9995 || *alerts))
        table_note(table, "    %s%savailable %.2f %% of %s", alerts, *alerts ? "; " : "",
                   100 * share, known);
    else if (*alerts)
        table_note(table, "    %s", alerts);
}

static void add_latency(struct table *table, const json_t *output, const char *key)
{
    const json_t *seconds = json_object_get(json_object_get(output, "latency"), key);
    if (json_is_number(seconds))
        table_cell(table, "%.1f ms", json_number_value(seconds) * 1e3);
    else
        table_cell(table, "-");
}

// Adds counts by reason: "12: late 4, client 8".
static void add_reasons(struct table *table, const json_t *counts)
{
    char text[256] = "";
    const char *reason;
    const json_t *n;
    json_int_t sum = 0;
    size_t used = 0;
    json_object_foreach((json_t *)counts, reason, n)
    {
        sum += json_integer_value(n);
        if (json_integer_value(n) && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %lld",
                                     used ? ", " : ": ", reason, (long long)json_integer_value(n));
    }
    table_cell(table, "%lld%s", (long long)sum, text);
}

static void add_openness(struct table *table, const json_t *output)
{
    table_cell(table, "%s", json_is_true(json_object_get(output, "open")) ? "open" : "closed");
}

static void add_output(struct table *table, const json_t *output)
{
    table_begin_row(table);
    table_cell(table, "  %s", text_at(output, "name"));
    add_openness(table, output);
    table_cell(table, "%.1f", number_at(output, "fps_out"));
    table_cell(table, "%s", text_at(output, "sink"));
    table_cell(table, "%lld", (long long)count_at(output, "clients"));
    add_latency(table, output, "p50_s");
    add_latency(table, output, "p99_s");
    table_cell(table, "%lld", (long long)count_at(output, "offered"));
    table_cell(table, "%lld", (long long)count_at(output, "emitted"));
    add_reasons(table, json_object_get(output, "lost"));
    add_complaint(table, output);
}

static void add_state(struct table *table, const json_t *camera)
{
    const json_t *next = json_object_get(camera, "next_try_s"), *alarm;
    const json_t *scene = json_object_get(camera, "scene");
    char alarms[128] = "";
    size_t i, used = 0;
    json_array_foreach((json_t *)json_object_get(scene, "alarms"), i, alarm)
    {
        used += (size_t)snprintf(alarms + used, sizeof alarms - used, ", %.20s",
                                 json_string_value(alarm));
    }
    if (json_is_number(next))
        table_cell(table, "%s in %.0f s", text_at(camera, "state"), ceil(json_number_value(next)));
    else
        table_cell(table, "%s%s", text_at(camera, "state"), alarms);
}

static void add_camera(struct table *table, const json_t *camera, bool several_gpus)
{
    const json_t *gpu = json_object_get(camera, "device");
    char device[32] = "", fallbacks[48] = "";
    const json_int_t fell_back = count_at(camera, "decoder_fallbacks");
    const json_t *picture = json_object_get(camera, "picture"), *output;
    const char *decodes = text_at(camera, "decodes");
    const bool all = !*decodes || strcmp(decodes, "all") == 0;
    size_t i;
    if (several_gpus && json_is_integer(gpu))
        snprintf(device, sizeof device, ", GPU %lld", (long long)json_integer_value(gpu));
    if (fell_back > 0)
        snprintf(fallbacks, sizeof fallbacks, ", %lld fallback%s", (long long)fell_back,
                 fell_back > 1 ? "s" : "");
    table_begin_row(table);
    table_cell(table, "%s", text_at(camera, "name"));
    add_state(table, camera);
    table_cell(table, "%.1f", number_at(camera, "fps_in"));
    if (json_is_object(picture))
        table_cell(table, "%s %lldx%lld, decoder %s%s%s%s%s, backend %s%s",
                   text_at(camera, "codec"), (long long)count_at(picture, "width"),
                   (long long)count_at(picture, "height"), text_at(camera, "decoder"),
                   all ? "" : " (", all ? "" : decodes, all ? "" : ")", fallbacks,
                   text_at(camera, "backend"), device);
    else
        table_cell(table, "%s", text_at(camera, "url"));
    add_availability(table, camera);
    add_complaint(table, camera);
    json_array_foreach((json_t *)json_object_get(camera, "outputs"), i, output)
    {
        add_output(table, output);
    }
}

// `heads` ends with NULL.
static void add_head(struct table *table, const char *const heads[])
{
    table_begin_row(table);
    for (int i = 0; heads[i]; i++)
        table_cell(table, "%s", heads[i]);
}

static void print_cameras(const json_t *cameras, bool several_gpus, FILE *to)
{
    static const char *const heads[] = {"CAMERA",  "STATE", "PER S", "STREAM OR SINK",
                                        "CLIENTS", "P50",   "P99",   "OFFERED",
                                        "EMITTED", "LOST",  NULL};
    struct table table = {.right = "llrlrrrrrl"};
    const json_t *camera;
    size_t i;
    add_head(&table, heads);
    json_array_foreach((json_t *)cameras, i, camera)
    {
        add_camera(&table, camera, several_gpus);
    }
    table_print(&table, to);
    table_free(&table);
}

// --- batches

static void add_batch(struct table *table, const json_t *batch)
{
    const json_t *mean = json_object_get(batch, "elements_mean");
    table_begin_row(table);
    table_cell(table, "%s", text_at(batch, "name"));
    add_openness(table, batch);
    table_cell(table, "%lld", (long long)count_at(batch, "capacity"));
    if (json_is_number(mean))
        table_cell(table, "%.1f", json_number_value(mean));
    else
        table_cell(table, "-");
    table_cell(table, "%s", text_at(batch, "sink"));
    table_cell(table, "%lld", (long long)count_at(batch, "clients"));
    add_reasons(table, json_object_get(batch, "closed"));
    add_complaint(table, batch);
}

static void print_batches(const json_t *batches, FILE *to)
{
    static const char *const heads[] = {"BATCH", "STATE",   "CAPACITY", "MEAN",
                                        "SINK",  "CLIENTS", "BATCHES",  NULL};
    struct table table = {.right = "llrrlrl"};
    const json_t *batch;
    size_t i;
    if (json_array_size(batches) == 0)
        return;
    putc('\n', to);
    add_head(&table, heads);
    json_array_foreach((json_t *)batches, i, batch)
    {
        add_batch(&table, batch);
    }
    table_print(&table, to);
    table_free(&table);
}

// --- results sent back by clients

// Adds an output of the camera, or with "" a batch, if it takes results.
static void add_results(struct table *table, const char *camera, const json_t *output)
{
    static const char *const counts[] = {"results", "objects", "late", "unanswered"};
    const json_t *results = json_object_get(output, "results");
    if (!json_is_object(results))
        return;
    table_begin_row(table);
    table_cell(table, "%s%s%s", camera, *camera ? " " : "", text_at(output, "name"));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        table_cell(table, "%lld", (long long)count_at(results, counts[i]));
    add_latency(table, results, "p50_s");
    add_latency(table, results, "p99_s");
    table_cell(table, "%lld", (long long)count_at(json_object_get(results, "lines"), "lost"));
    add_reasons(table, json_object_get(results, "wrong"));
}

static void print_results(const json_t *status, FILE *to)
{
    static const char *const heads[] = {"RESULTS OF", "RESULTS", "OBJECTS", "LATE",
                                        "UNANSWERED", "P50",     "P99",     "LINES LOST",
                                        "WRONG",      NULL};
    struct table table = {.right = "lrrrrrrrl"};
    const json_t *camera, *output;
    size_t i, o;
    add_head(&table, heads);
    json_array_foreach(json_object_get(status, "cameras"), i, camera)
    {
        json_array_foreach(json_object_get(camera, "outputs"), o, output)
        {
            add_results(&table, text_at(camera, "name"), output);
        }
    }
    json_array_foreach(json_object_get(status, "batches"), o, output)
    {
        add_results(&table, "", output);
    }
    if (table.n > 1) {
        putc('\n', to);
        table_print(&table, to);
    }
    table_free(&table);
}

// --- all of it

static void status_view(const json_t *status, FILE *to)
{
    const json_t *devices = json_object_get(status, "devices");
    const bool several = count_gpus(devices) > 1;
    print_daemon(status, to);
    if (several)
        print_gpus(devices, to);
    print_bottleneck(json_object_get(status, "bound"), several, to);
    print_unfinished(json_object_get(status, "unfinished"), to);
    putc('\n', to);
    print_cameras(json_object_get(status, "cameras"), several, to);
    print_batches(json_object_get(status, "batches"), to);
    print_results(status, to);
}

// --- the command

enum { TIMEOUT_S = 5, WATCH_S = 1, WHY_MAX = 2 * PATH_MAX + 128 };

// Cuts lines off at the edge of the terminal instead of wrapping them, and hides the cursor.
#define SCREEN_BEGIN "\033[?1049h\033[?25l\033[?7l"
#define SCREEN_END   "\033[?7h\033[?25h\033[?1049l"
#define SCREEN_HOME  "\033[H"
#define LINE_END     "\033[K\n"
#define REST_CLEAR   "\033[J"

static void usage(FILE *to)
{
    fputs("usage: framed status [OPTION]...\n"
          "Prints what the running daemon does now.\n\n"
          "  -c, --config FILE   the configuration that it runs with (" DEFAULT_CONFIG "):\n"
          "                      a daemon that runs with another file refuses\n"
          "  --socket PATH       its control socket, where that is not what FILE says\n"
          "  --json              print everything, for programs\n"
          "  --watch             print it anew each second, until Ctrl-C\n",
          to);
}

struct choice {
    struct ask ask;
    char request[CONTROL_LINE_MAX];
    bool json, watches;
};

// Returns true if the reply is an error, with the reason in `why`.
static bool is_refused(const json_t *reply, char *why, size_t size)
{
    const char *error = json_string_value(json_object_get(reply, "error"));
    const char *first = json_string_value(json_array_get(json_object_get(reply, "errors"), 0));
    if (error || first)
        snprintf(why, size, "%s", error ? error : first);
    return error || first;
}

static json_t *get(struct choice *choice, char *why, size_t size)
{
    struct ask *ask = &choice->ask;
    char *reply;
    json_t *status = NULL;
    json_error_t error;
    if (ask_for(ask, choice->request, TIMEOUT_S, &reply, why, size) == 0) {
        status = json_loads(reply, 0, &error);
        if (!status)
            snprintf(why, size, "%s is not framed's control socket", ask->shown);
    }
    if (is_refused(status, why, size)) {
        json_decref(status);
        status = NULL;
    }
    free(reply);
    return status;
}

static int print_once(struct choice *choice)
{
    char why[WHY_MAX];
    json_t *status = get(choice, why, sizeof why);
    if (!status) {
        fprintf(stderr, "framed status: %s\n", why);
        return EXIT_RUNTIME;
    }
    if (choice->json) {
        json_dumpf(status, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        putchar('\n');
    } else {
        status_view(status, stdout);
    }
    json_decref(status);
    return fflush(stdout) == 0 ? EXIT_OK : EXIT_RUNTIME;
}

// --- watching

static char *render(struct choice *choice)
{
    char why[WHY_MAX], *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    json_t *status = get(choice, why, sizeof why);
    if (status)
        status_view(status, to);
    else
        fprintf(to, "%s\n", why);
    json_decref(status);
    fclose(to);
    return text;
}

static int terminal_rows(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

// Omits lines that do not fit, at the bottom.
static void draw(const char *text)
{
    fputs(SCREEN_HOME, stdout);
    for (int left = terminal_rows() - 1; left > 0 && *text; left--) {
        int n = (int)strcspn(text, "\n");
        printf("%.*s" LINE_END, n, text);
        text += n + (text[n] == '\n');
    }
    fputs(REST_CLEAR, stdout);
}

static sigset_t set_of(const int signals[], int n)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < n; i++)
        sigaddset(&set, signals[i]);
    return set;
}

// Lets a blocked signal act: stops the process until it is continued, or ends it.
static void let_act(int number)
{
    const sigset_t set = set_of(&number, 1);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

// Redraws until one of the signals arrives, which is returned; 0: the reader is gone.
static int redraw(struct choice *choice, bool terminal, const sigset_t *signals)
{
    const struct timespec pause = {.tv_sec = WATCH_S};
    int number = -1;
    while (number < 0) {
        char *text = render(choice);
        if (terminal)
            draw(text);
        else
            puts(text);
        free(text);
        number = fflush(stdout) == 0 ? sigtimedwait(signals, NULL, &pause) : 0;
    }
    return number;
}

// Waits for the signals, so that the screen is complete when one arrives, and is restored before
// the signal acts.
static int watch(struct choice *choice)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
    const sigset_t signals = set_of(ends, sizeof ends / sizeof ends[0]);
    const bool terminal = isatty(STDOUT_FILENO);
    int number;
    sigprocmask(SIG_BLOCK, &signals, NULL);
    do {
        fputs(terminal ? SCREEN_BEGIN : "", stdout);
        number = redraw(choice, terminal, &signals);
        fputs(terminal ? SCREEN_END : "", stdout);
        fflush(stdout);
        if (number == SIGQUIT || number == SIGTSTP)
            let_act(number);
    } while (number == SIGTSTP);
    return EXIT_OK;
}

// --- the command

static int take(void *opaque, int option, const char *text)
{
    struct choice *choice = opaque;
    switch (option) {
    case 'c':
        choice->ask.config = text;
        break;
    case 's':
        choice->ask.socket = text;
        break;
    case 'j':
        choice->json = true;
        break;
    case 'w':
        choice->watches = true;
        break;
    }
    return EXIT_OK;
}

int status_main(int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'}, {"socket", required_argument, NULL, 's'},
        {"json", no_argument, NULL, 'j'},         {"watch", no_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},         {0},
    };
    static const struct command_line line = {"framed status", ":c:h", options, usage, take, NULL};
    struct choice choice = {.ask.command = "status"};
    struct ask *ask = &choice.ask;
    bool help;
    int code = command_line_read(&line, argc, argv, &choice, &help);
    if (code != EXIT_OK || help)
        return code;
    if (choice.json && choice.watches)
        return command_line_refuse(line.command, "--watch", "is not for --json");
    code = ask_find(ask);
    if (code == EXIT_OK)
        code = ask_request(ask, "status", choice.request);
    if (code != EXIT_OK)
        return code;
    return choice.watches ? watch(&choice) : print_once(&choice);
}
