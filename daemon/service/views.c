#include "daemon/service/views.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/view/view_messages.h"

enum { WIDTH = 640 }; // default

// --- the target of a request

bool target_read(struct target *ret, const char *text)
{
    unsigned plane;
    int n[3] = {0};
    *ret = (struct target){.kind.plane = -1};
    const int found = sscanf(text, "%31[A-Za-z0-9_-]%n/%31[A-Za-z0-9_-]%n/%1u%n", ret->camera,
                             &n[0], ret->kind.output, &n[1], &plane, &n[2]);
    if (found == 3)
        ret->kind.plane = (int)plane;
    return found >= 1 && text[n[found - 1]] == 0;
}

// Parses one name; false: too long or malformed.
static bool target_read_name(char ret[TARGET_NAME_MAX + 1], const char *text)
{
    int n = 0;
    return sscanf(text, "%31[A-Za-z0-9_-]%n", ret, &n) == 1 && !text[n];
}

bool target_read_width(int *ret, const char *text)
{
    char *end;
    const long width = strtol(text, &end, 10);
    *ret = (int)width;
    return *text && !*end && width >= PREVIEW_WIDTH_MIN && width <= PREVIEW_WIDTH_MAX;
}

int target_ask(const struct metrics *metrics, const char *name, struct preview_reader *reader,
               char *why, size_t size)
{
    struct camera *camera = metrics_camera(metrics, name);
    const char *output = reader->kind.output;
    if (!camera) {
        snprintf(why, size, "there is no camera %s", name);
        return -ENOENT;
    }
    const int rc = preview_start(&camera->preview, reader);
    if (rc == -ENOENT)
        snprintf(why, size, "camera %s has no output %s", name, output);
    else if (rc == -EINVAL)
        snprintf(why, size, "camera %s: output %s is not made of every picture", name, output);
    else if (rc == -ENOSPC)
        snprintf(why, size, "camera %s: %d kinds of pictures are asked for, which is the most",
                 name, PREVIEW_KINDS_MAX);
    else if (rc < 0)
        snprintf(why, size, "camera %s: %s", name, strerror(-rc));
    return rc;
}

// --- a snapshot

static const int64_t SNAPSHOT_NS = INT64_C(4000000000);
struct snapshot {
    struct http_exchange *exchange;
    struct target target;
    struct preview_reader reader;
};

static void snapshot_lost_its_client(void *opaque)
{
    struct snapshot *snapshot = opaque;
    preview_stop(&snapshot->reader);
    free(snapshot);
}

static void answer_snapshot(struct preview_reader *reader, struct preview_picture *picture)
{
    struct snapshot *snapshot =
        (struct snapshot *)((char *)reader - offsetof(struct snapshot, reader));
    struct http_page page = {.status = 200, .type = "image/jpeg", .size = picture->size};
    const char *output = snapshot->target.kind.output;
    if (picture->why[0]) {
        http_refuse(snapshot->exchange, 503, "%s%s%s: %s", snapshot->target.camera,
                    *output ? "/" : "", output, picture->why);
    } else {
        page.body = malloc(picture->size);
        if (page.body)
            memcpy(page.body, picture->file, picture->size);
        http_answer(snapshot->exchange, &page);
    }
    free(snapshot);
}

// False: the request was refused.
static bool read_snapshot_target(struct http_exchange *exchange, struct target *ret)
{
    const char *output = http_part(exchange, 1);
    const char *width = http_argument(exchange, "width"), *plane = http_argument(exchange, "plane");
    struct preview_kind *kind = &ret->kind;
    *ret = (struct target){.kind = {.plane = -1, .width = WIDTH}};
    if (!target_read_name(ret->camera, http_part(exchange, 0)) ||
        (output && !target_read_name(kind->output, output))) {
        http_refuse(exchange, 404, "there is no camera or output of such a name");
        return false;
    }
    if (output && plane) {
        kind->plane = *plane - '0';
        if (kind->plane < 0 || kind->plane > 2 || plane[1]) {
            http_refuse(exchange, 400, "plane is 0, 1 or 2");
            return false;
        }
    }
    if (!output && width && !target_read_width(&kind->width, width)) {
        http_refuse(exchange, 400, "width is a number of pixels from %d to %d", PREVIEW_WIDTH_MIN,
                    PREVIEW_WIDTH_MAX);
        return false;
    }
    return true;
}

void snapshot_serve(const struct metrics *metrics, struct http_exchange *exchange)
{
    struct target target;
    char why[PREVIEW_WHY_MAX];
    if (!read_snapshot_target(exchange, &target))
        return;
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot) {
        http_refuse(exchange, 503, "no memory");
        return;
    }
    *snapshot = (struct snapshot){
        .exchange = exchange,
        .target = target,
        .reader = {.kind = target.kind, .patience_ns = SNAPSHOT_NS, .take = answer_snapshot},
    };
    const int rc = target_ask(metrics, target.camera, &snapshot->reader, why, sizeof why);
    if (rc == 0) {
        http_hold(exchange, snapshot_lost_its_client, snapshot);
        return;
    }
    http_refuse(exchange, rc == -ENOENT ? 404 : rc == -EINVAL ? 400 : 503, "%s", why);
    free(snapshot);
}

// --- streams

enum {
    TICK_MS = 1000,
    FPS = 5, // default
};
static const char TOO_MANY[] = "too many clients that follow something";
static const char LIST[] =
    "c is a list of 1 to 64 of CAMERA[/OUTPUT[/PLANE]]:WIDTH, with widths from "
    "64 to 1920 (c=gate:320,yard/detect:320)";
static const int64_t ALIVE_NS = INT64_C(5000000000);

struct view_streams {
    struct view_streams_context context;
    uv_timer_t timer; // active while there are viewers
    int n;
    struct viewer *viewers;
};

struct viewer {
    struct view_streams *streams;
    struct http_exchange *exchange;
    struct view_messages *messages;
    int64_t put_ns; // CLOCK_MONOTONIC: when something was last put
    struct viewer *link;
    int n;
    struct view_entry {
        struct viewer *viewer;
        struct target target;
        struct preview_reader reader;
    } list[];
};

static void put_picture(struct viewer *viewer, int index, struct preview_picture *picture)
{
    viewer->put_ns = monotonic_ns();
    view_messages_put(viewer->messages, index, picture);
    http_wake(viewer->exchange);
}

static void take_picture(struct preview_reader *reader, struct preview_picture *picture)
{
    struct view_entry *entry =
        (struct view_entry *)((char *)reader - offsetof(struct view_entry, reader));
    put_picture(entry->viewer, (int)(entry - entry->viewer->list), picture);
}

// Requests the pictures of all entries without a request.
static void ask_for_rest(struct viewer *viewer, const struct metrics *metrics)
{
    for (int i = 0; i < viewer->n; i++) {
        struct view_entry *entry = &viewer->list[i];
        char why[PREVIEW_WHY_MAX];
        if (entry->reader.preview ||
            target_ask(metrics, entry->target.camera, &entry->reader, why, sizeof why) == 0)
            continue;
        struct preview_picture *refusal =
            preview_picture_refuse(entry->target.camera, entry->reader.kind.output, why);
        if (refusal)
            put_picture(viewer, i, refusal);
        preview_picture_unref(refusal);
    }
}

// --- streams, every second

static void tend(struct viewer *viewer, const struct metrics *metrics)
{
    ask_for_rest(viewer, metrics);
    if (monotonic_ns() - viewer->put_ns < ALIVE_NS)
        return;
    viewer->put_ns = monotonic_ns();
    view_messages_put_alive(viewer->messages);
    http_wake(viewer->exchange);
}

static void tick(uv_timer_t *timer)
{
    struct view_streams *streams = timer->data;
    struct metrics metrics;
    streams->context.snapshot(streams->context.opaque, &metrics);
    for (struct viewer *viewer = streams->viewers, *next; viewer; viewer = next) {
        next = viewer->link;
        tend(viewer, &metrics);
    }
}

// --- a viewer of a stream

static void close_viewer(void *opaque)
{
    struct viewer *viewer = opaque;
    struct view_streams *streams = viewer->streams;
    struct viewer **link = &streams->viewers;
    for (int i = 0; i < viewer->n; i++)
        preview_stop(&viewer->list[i].reader);
    view_messages_close(viewer->messages);
    while (*link != viewer)
        link = &(*link)->link;
    *link = viewer->link;
    if (--streams->n == 0)
        uv_timer_stop(&streams->timer);
    free(viewer);
}

// Returns a viewer with room for n pictures. NULL: out of memory.
static struct viewer *open_viewer(struct view_streams *streams, struct http_exchange *exchange,
                                  int n)
{
    struct viewer *viewer = calloc(1, sizeof *viewer + (size_t)n * sizeof viewer->list[0]);
    if (!viewer)
        return NULL;
    viewer->streams = streams;
    viewer->exchange = exchange;
    viewer->link = streams->viewers;
    streams->viewers = viewer;
    if (streams->n++ == 0)
        uv_timer_start(&streams->timer, tick, TICK_MS, TICK_MS);
    return viewer;
}

static void add_target(struct viewer *viewer, const struct target *target)
{
    viewer->list[viewer->n++] =
        (struct view_entry){.viewer = viewer,
                            .target = *target,
                            .reader = {.kind = target->kind, .take = take_picture}};
}

static void refuse_viewer(struct viewer *viewer, int status, const char *why)
{
    http_refuse(viewer->exchange, status, "%s", why);
    close_viewer(viewer);
}

// False: the request was refused.
static bool admit_viewer(struct view_streams *streams, struct http_exchange *exchange, double *fps)
{
    const char *text = http_argument(exchange, "fps");
    char *end;
    *fps = text ? strtod(text, &end) : FPS;
    if (streams->n == VIEWERS_MAX)
        http_refuse(exchange, 503, "%d viewers look already, which is the most", VIEWERS_MAX);
    else if (text && (*end || !*text || !(*fps >= PREVIEW_FPS_MIN && *fps <= PREVIEW_FPS_MAX)))
        http_refuse(exchange, 400, "fps is a number from %g to %g", PREVIEW_FPS_MIN,
                    PREVIEW_FPS_MAX);
    else
        return true;
    return false;
}

static size_t fill_messages(void *opaque, char *to, size_t room)
{
    const struct viewer *viewer = opaque;
    return view_messages_fill(viewer->messages, to, room);
}

// Streams the viewer's messages; false: there are too many clients.
static bool begin_stream(struct viewer *viewer, const char *type)
{
    const struct http_stream stream = {
        .type = type, .fill = fill_messages, .gone = close_viewer, .opaque = viewer};
    return http_stream(viewer->exchange, &stream) == 0;
}

// --- many cameras

// Parses n bytes: "gate:320", "gate/net/1:320".
static bool read_target(struct target *ret, const char *text, size_t n)
{
    char copy[2 * TARGET_NAME_MAX + 16];
    if (n >= sizeof copy)
        return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    char *colon = strchr(copy, ':');
    if (!colon)
        return false;
    *colon = 0;
    int width;
    if (!target_read(ret, copy) || !target_read_width(&width, colon + 1))
        return false;
    ret->kind.width = width;
    return true;
}

// False: the list is not one of 1 to VIEW_PICTURES_MAX targets.
static bool add_targets(struct viewer *viewer, const char *list, double fps)
{
    for (size_t n; *list; list += n + (list[n] == ',')) {
        struct target target;
        n = strcspn(list, ",");
        if (viewer->n == VIEW_PICTURES_MAX || !read_target(&target, list, n))
            return false;
        target.kind.fps = fps;
        add_target(viewer, &target);
    }
    return viewer->n > 0;
}

void view_streams_serve(struct view_streams *streams, struct http_exchange *exchange)
{
    const char *list = http_argument(exchange, "c");
    struct metrics metrics;
    double fps;
    if (!admit_viewer(streams, exchange, &fps))
        return;
    struct viewer *viewer = open_viewer(streams, exchange, VIEW_PICTURES_MAX);
    if (!viewer) {
        http_refuse(exchange, 503, "no memory");
    } else if (!add_targets(viewer, list ? list : "", fps)) {
        refuse_viewer(viewer, 400, LIST);
    } else if (view_messages_open(&viewer->messages, viewer->n) < 0) {
        refuse_viewer(viewer, 503, "no memory");
    } else if (!begin_stream(viewer, "application/octet-stream")) {
        refuse_viewer(viewer, 503, TOO_MANY);
    } else {
        streams->context.snapshot(streams->context.opaque, &metrics);
        ask_for_rest(viewer, &metrics);
    }
}

// --- one camera as parts

void view_streams_serve_mjpeg(struct view_streams *streams, struct http_exchange *exchange)
{
    const char *width = http_argument(exchange, "width");
    struct target target = {.kind = {.plane = -1, .width = WIDTH}};
    struct metrics metrics;
    char why[PREVIEW_WHY_MAX];
    if (!admit_viewer(streams, exchange, &target.kind.fps))
        return;
    if (!target_read_name(target.camera, http_part(exchange, 0))) {
        http_refuse(exchange, 404, "there is no camera of such a name");
        return;
    }
    if (width && !target_read_width(&target.kind.width, width)) {
        http_refuse(exchange, 400, "width is a number of pixels from %d to %d", PREVIEW_WIDTH_MIN,
                    PREVIEW_WIDTH_MAX);
        return;
    }
    struct viewer *viewer = open_viewer(streams, exchange, 1);
    if (!viewer) {
        http_refuse(exchange, 503, "no memory");
        return;
    }
    if (view_parts_open(&viewer->messages) < 0) {
        refuse_viewer(viewer, 503, "no memory");
        return;
    }
    add_target(viewer, &target);
    streams->context.snapshot(streams->context.opaque, &metrics);
    const int rc = target_ask(&metrics, target.camera, &viewer->list[0].reader, why, sizeof why);
    if (rc < 0)
        refuse_viewer(viewer, rc == -ENOENT ? 404 : 503, why);
    else if (!begin_stream(viewer, VIEW_PARTS_TYPE))
        refuse_viewer(viewer, 503, TOO_MANY);
}

// --- life

int view_streams_open(struct view_streams **ret, const struct view_streams_context *context)
{
    struct view_streams *streams = calloc(1, sizeof *streams);
    if (!streams)
        return -ENOMEM;
    streams->context = *context;
    uv_timer_init(context->loop, &streams->timer);
    streams->timer.data = streams;
    *ret = streams;
    return 0;
}

static void free_streams(uv_handle_t *handle)
{
    free(handle->data);
}

void view_streams_close(struct view_streams *streams)
{
    if (streams)
        uv_close((uv_handle_t *)&streams->timer, free_streams);
}

int view_streams_count(const struct view_streams *streams)
{
    return streams->n;
}
