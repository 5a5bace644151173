#include "daemon/service/routes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/service/event_log.h"
#include "daemon/service/history.h"
#include "daemon/service/status.h"
#include "daemon/service/views.h"

static const int64_t READY_ANY_NS = 30 * INT64_C(1000000000); // first wait for all cameras
static const char PLAIN[] = "text/plain; charset=utf-8";

static struct http_page text_page(int status, const char *type, char *text)
{
    return (struct http_page){
        .status = status, .type = type, .body = text, .size = text ? strlen(text) : 0};
}

static struct http_page metrics_page(const struct metrics *metrics)
{
    struct http_page page = {.status = 200, .type = "text/plain; version=0.0.4; charset=utf-8"};
    page.body = metrics_text(metrics, &page.size);
    return page;
}

// Unhealthy: the same that withholds signs of life from the service manager. The page shows that
// the loop runs.
static struct http_page health_page(const struct metrics *metrics)
{
    const struct health *health = &metrics->health;
    char *text = NULL;
    if (!health->stuck)
        return text_page(200, PLAIN, strdup("ok\n"));
    if (asprintf(&text, "camera %s is stuck while %s\n", health->stuck, health->step) < 0)
        text = NULL;
    return text_page(503, PLAIN, text);
}

// A camera that has shown a picture and is away now is ready: framed waits for it.
static bool is_ready(struct camera *camera)
{
    const int state = atomic_load(&camera->report.state);
    return atomic_load(&camera->report.pictures) > 0 || state == CAMERA_ENDED ||
           state == CAMERA_PAUSED;
}

// 503 lists the cameras without a picture since their start, except ended and paused ones.
static struct http_page readiness_page(const struct metrics *metrics)
{
    const bool one_is_enough = metrics->ready == READY_ANY && metrics->up_ns >= READY_ANY_NS;
    char *body = NULL;
    size_t size;
    int waiting = 0;
    FILE *to = open_memstream(&body, &size);
    for (int i = 0; to && i < metrics->n_cameras; i++)
        if (!is_ready(metrics->cameras[i]))
            fprintf(to, "%s%s", waiting++ ? ", " : "no picture yet from ",
                    metrics->cameras[i]->config->name);
    const bool ready = waiting == 0 || (one_is_enough && waiting < metrics->n_cameras);
    if (to)
        fprintf(to, "%s%s", waiting ? "\n" : "", ready ? "ready\n" : "");
    if (to && fclose(to) != 0) {
        free(body);
        body = NULL;
    }
    return text_page(ready ? 200 : 503, PLAIN, body);
}

static struct http_page cameras_page(const struct metrics *metrics)
{
    return text_page(200, "application/json", status_cameras_text(metrics));
}

static struct http_page scenes_page(const struct metrics *metrics)
{
    return text_page(200, "application/json", status_scenes_text(metrics));
}

static struct http_page status_page(const struct metrics *metrics)
{
    return text_page(200, "application/json", status_text(metrics->status, metrics));
}

static struct http_page summary_page(const struct metrics *metrics)
{
    return text_page(200, "application/json", status_summary_text(metrics->status, metrics));
}

static struct http_page cluster_page(const struct metrics *metrics)
{
    return text_page(200, "application/json", status_cluster_text(metrics));
}

static const struct {
    const char *path;
    struct http_page (*get)(const struct metrics *);
} pages[] = {
    {"/metrics", metrics_page},        {"/healthz", health_page},
    {"/readyz", readiness_page},       {"/api/v1/cameras", cameras_page},
    {"/api/v1/scenes", scenes_page},   {"/api/v1/status", status_page},
    {"/api/v1/summary", summary_page}, {"/api/v1/cluster", cluster_page},
};

bool routes_get(const struct metrics *metrics, const char *path, struct http_page *ret)
{
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        if (strcmp(pages[i].path, path) == 0) {
            *ret = pages[i].get(metrics);
            return true;
        }
    return false;
}

static void serve_page(void *opaque, struct http_exchange *exchange)
{
    const struct routes_context *context = opaque;
    struct metrics metrics;
    struct http_page page;
    context->snapshot(context->opaque, &metrics);
    metrics.only_camera = http_argument(exchange, "camera");
    metrics.http_write = http_may_write(exchange);
    if (routes_get(&metrics, http_path(exchange), &page))
        http_answer(exchange, &page);
    else
        http_refuse(exchange, 404, "no such page");
}

// False: the request was refused.
static bool read_wanted(struct http_exchange *exchange, struct history_wanted *wanted)
{
    const char *samples = http_argument(exchange, "samples");
    const char *since = http_argument(exchange, "since"), *only = http_argument(exchange, "only");
    int used = 0;
    char *end;
    wanted->camera = http_argument(exchange, "camera");
    if (samples && (sscanf(samples, "%3d%n", &wanted->samples, &used) != 1 || samples[used] ||
                    wanted->samples < 1 || wanted->samples > HISTORY_SAMPLES)) {
        http_refuse(exchange, 400, "samples is a number from 1 to %d", HISTORY_SAMPLES);
        return false;
    }
    if (since)
        wanted->since = strtoull(since, &end, 10);
    if (since && (*end || *since < '0' || *since > '9')) {
        http_refuse(exchange, 400, "since is the number of a sample");
        return false;
    }
    if (only && strcmp(only, "lost") != 0) {
        http_refuse(exchange, 400, "only may be lost");
        return false;
    }
    wanted->lost_only = only;
    return true;
}

static void serve_history(void *opaque, struct http_exchange *exchange)
{
    const struct routes_context *context = opaque;
    struct history_wanted wanted = {.samples = HISTORY_SAMPLES};
    struct metrics metrics;
    if (!read_wanted(exchange, &wanted))
        return;
    context->snapshot(context->opaque, &metrics);
    if (wanted.camera && !metrics_camera(&metrics, wanted.camera)) {
        http_refuse(exchange, 404, "there is no camera of that name");
        return;
    }
    const struct http_page page =
        text_page(200, "application/json", history_text(metrics.history, &wanted, monotonic_ns()));
    http_answer(exchange, &page);
}

static void serve_events(void *opaque, struct http_exchange *exchange)
{
    event_streams_serve(((struct routes_context *)opaque)->streams, exchange);
}

static void serve_snapshot(void *opaque, struct http_exchange *exchange)
{
    const struct routes_context *context = opaque;
    struct metrics metrics;
    context->snapshot(context->opaque, &metrics);
    snapshot_serve(&metrics, exchange);
}

static void serve_where(void *opaque, struct http_exchange *exchange)
{
    const struct routes_context *context = opaque;
    struct metrics metrics;
    context->snapshot(context->opaque, &metrics);
    status_cluster_where(&metrics, exchange);
}

static void serve_view(void *opaque, struct http_exchange *exchange)
{
    view_streams_serve(((struct routes_context *)opaque)->views, exchange);
}

static void serve_mjpeg(void *opaque, struct http_exchange *exchange)
{
    view_streams_serve_mjpeg(((struct routes_context *)opaque)->views, exchange);
}

// --- the web page and the description of the API, embedded in the binary

enum { FILE_BYTES_MAX = 1 << 20 }; // of a file in the folder

// The files of daemon/service/page: label, name and type. make compresses each into NAME.gz, and
// hashes it into NAME.tag, a header's value.
#define FILES(FILE)                                                                                \
    FILE(index, "index.html", "text/html; charset=utf-8")                                          \
    FILE(icon, "icon.svg", "image/svg+xml")                                                        \
    FILE(style, "style.css", "text/css; charset=utf-8")                                            \
    FILE(api, "api.js", "text/javascript; charset=utf-8")                                          \
    FILE(app, "app.js", "text/javascript; charset=utf-8")                                          \
    FILE(camera, "camera.js", "text/javascript; charset=utf-8")                                    \
    FILE(chart, "chart.js", "text/javascript; charset=utf-8")                                      \
    FILE(cluster, "cluster.js", "text/javascript; charset=utf-8")                                  \
    FILE(code, "code.js", "text/javascript; charset=utf-8")                                        \
    FILE(commands, "commands.js", "text/javascript; charset=utf-8")                                \
    FILE(config, "config.js", "text/javascript; charset=utf-8")                                    \
    FILE(dom, "dom.js", "text/javascript; charset=utf-8")                                          \
    FILE(events, "events.js", "text/javascript; charset=utf-8")                                    \
    FILE(history, "history.js", "text/javascript; charset=utf-8")                                  \
    FILE(overview, "overview.js", "text/javascript; charset=utf-8")                                \
    FILE(picture, "picture.js", "text/javascript; charset=utf-8")                                  \
    FILE(status, "status.js", "text/javascript; charset=utf-8")                                    \
    FILE(view, "view.js", "text/javascript; charset=utf-8")                                        \
    FILE(wizard, "wizard.js", "text/javascript; charset=utf-8")                                    \
    FILE(words, "words.js", "text/javascript; charset=utf-8")

#define EMBED(label, name, type)                                                                   \
    __asm__(".pushsection .rodata\n"                                                               \
            ".hidden page_" #label "\n.global page_" #label "\npage_" #label ":\n"                 \
            ".incbin \"" name ".gz\"\n"                                                            \
            ".hidden page_" #label "_tag\n.global page_" #label "_tag\npage_" #label "_tag:\n"     \
            ".incbin \"" name ".tag\"\n.byte 0\n"                                                  \
            ".popsection\n");                                                                      \
    extern const char page_##label[], page_##label##_tag[];
FILES(EMBED)

#define ROW(label, name, type) {name, type, page_##label, page_##label##_tag},
static const struct {
    const char *name, *type;
    const char *body, *tag; // the body ends where its tag begins
} files[] = {FILES(ROW)};

static int find_page_file(const char *name)
{
    const int n = sizeof files / sizeof files[0];
    int i = 0;
    while (i < n && strcmp(files[i].name, name) != 0)
        i++;
    return i < n ? i : -1;
}

// Returns 0 or a negative errno. Blocks the loop: for development only.
static int read_page_file(const char *folder, const char *name, struct http_page *page)
{
    char *path = NULL;
    FILE *file = asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : fopen(path, "r");
    int rc = file ? 0 : -errno;
    page->body = file ? malloc(FILE_BYTES_MAX) : NULL;
    if (page->body)
        page->size = fread(page->body, 1, FILE_BYTES_MAX, file);
    if (file)
        fclose(file);
    free(path);
    return rc;
}

// Serves "/" and "/page/NAME". If the environment variable FRAMED_WEB names a folder, reads the
// files from there at each request instead, for development of the page.
static void serve_file(void *opaque, struct http_exchange *exchange)
{
    const char *part = http_part(exchange, 0), *folder = getenv("FRAMED_WEB");
    const char *name = part && *part ? part : "index.html";
    const int i = find_page_file(name);
    (void)opaque;
    if (i < 0) {
        http_refuse(exchange, 404, "no such page");
        return;
    }
    struct http_page page = {
        .status = 200,
        .type = files[i].type,
        .body = (char *)files[i].body, // never written to
        .size = (size_t)(files[i].tag - files[i].body),
        .constant = true,
        .gzipped = true,
        .etag = files[i].tag,
    };
    if (folder && *folder) {
        page = (struct http_page){.status = 200, .type = files[i].type};
        int rc = read_page_file(folder, name, &page);
        if (rc < 0) {
            http_refuse(exchange, 404, "%s/%s: %s", folder, name, strerror(-rc));
            return;
        }
    }
    http_answer(exchange, &page);
}

__asm__(".pushsection .rodata\n"
        ".hidden openapi_text\n.global openapi_text\nopenapi_text:\n"
        ".incbin \"daemon/service/openapi.json\"\n"
        ".hidden openapi_end\n.global openapi_end\nopenapi_end:\n"
        ".byte 0\n"
        ".popsection\n");

static void serve_openapi(void *opaque, struct http_exchange *exchange)
{
    (void)opaque;
    http_answer(exchange, &(struct http_page){
                              .status = 200,
                              .type = "application/json",
                              .body = (char *)openapi_text,
                              .size = (size_t)(openapi_end - openapi_text),
                              .constant = true,
                          });
}

// --- all of them

const struct http_route routes_table[] = {
    {.method = "GET", .pattern = "/metrics", .serve = serve_page},
    {.method = "GET", .pattern = "/healthz", .serve = serve_page},
    {.method = "GET", .pattern = "/readyz", .serve = serve_page},
    {.method = "GET", .pattern = "/api/v1/cameras", .serve = serve_page},
    {.method = "GET", .pattern = "/api/v1/scenes", .serve = serve_page},
    {.method = "GET", .pattern = "/api/v1/status", .serve = serve_page},
    {.method = "GET", .pattern = "/api/v1/summary", .serve = serve_page},
    {.method = "GET", .pattern = "/api/v1/cluster", .serve = serve_page},
    {.method = "GET", .pattern = "/api/v1/where/*", .serve = serve_where},
    {.method = "GET", .pattern = "/api/v1/history", .serve = serve_history},
    {.method = "GET", .pattern = "/api/v1/events", .serve = serve_events},
    {.method = "POST", .pattern = "/api/v1/discover", .serve = routes_discover, .writes = true},
    {.method = "POST", .pattern = "/api/v1/probe", .serve = routes_probe, .writes = true},
    {.method = "GET", .pattern = "/api/v1/config", .serve = routes_show_config},
    {.method = "POST", .pattern = "/api/v1/check", .serve = routes_check_config},
    {.method = "POST", .pattern = "/api/v1/reload", .serve = routes_reload, .writes = true},
    {.method = "GET", .pattern = "/api/v1/openapi.json", .serve = serve_openapi, .open = true},
    {.method = "GET", .pattern = "/api/v1/view", .serve = serve_view},
    {.method = "GET", .pattern = "/api/v1/cameras/*/snapshot.jpg", .serve = serve_snapshot},
    {.method = "GET",
     .pattern = "/api/v1/cameras/*/outputs/*/snapshot.jpg",
     .serve = serve_snapshot},
    {.method = "GET", .pattern = "/api/v1/cameras/*/stream.mjpg", .serve = serve_mjpeg},
    {.method = "GET", .pattern = "/", .serve = serve_file, .open = true},
    {.method = "GET", .pattern = "/page/*", .serve = serve_file, .open = true},
    {.method = "PUT", .pattern = "/api/v1/cameras/*", .serve = routes_put_camera, .writes = true},
    {.method = "DELETE",
     .pattern = "/api/v1/cameras/*",
     .serve = routes_delete_camera,
     .writes = true},
    {.method = "POST",
     .pattern = "/api/v1/cameras/*/pause",
     .serve = routes_pause_camera,
     .writes = true},
    {.method = "POST",
     .pattern = "/api/v1/cameras/*/resume",
     .serve = routes_resume_camera,
     .writes = true},
};
const int routes_count = sizeof routes_table / sizeof routes_table[0];
