#include "daemon/service/control_commands.h"

#include <errno.h>
#include <jansson.h>
#include <libavutil/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/access.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/process.h"
#include "daemon/output/subscriptions.h"
#include "daemon/service/status.h"
#include "daemon/service/views.h"

static const int64_t PATIENCE_NS = INT64_C(4000000000); // for a JPEG

// A request with a file is only for a daemon with that configuration: work checks whether it is
// this one, one request after another.
struct request {
    struct control_commands *commands;
    struct control_request *control;
    enum request_kind {
        REQUEST_STATUS,
        REQUEST_RELOAD,
        REQUEST_RECORD,
        REQUEST_SNAP,
        REQUEST_PAUSE,
        REQUEST_RESUME,
        REQUEST_METRICS,
        REQUESTS
    } kind;
    char camera[32];        // to record, pause or resume
    long long milliseconds; // of a clip, from now on
    struct target target;   // of a JPEG
    struct preview_reader reader;
    struct reload_request reload; // also of a pause
    char *file;                   // NULL: none
    struct request *next;
};

// --- replies, for control_reply

// Frees `json`.
static char *text_of(json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

static json_t *lines_json(const char *lines)
{
    json_t *list = json_array();
    for (size_t n; *lines; lines += n + (lines[n] == '\n')) {
        n = strcspn(lines, "\n");
        char *line = strndup(lines, n);
        if (line && n > 0)
            json_array_append_new(list, status_string(line));
        free(line);
    }
    return list;
}

static json_t *done_json(const struct reload_result *result)
{
    char done[160];
    return json_pack("{s:b, s:s, s:{s:i, s:i, s:i, s:i}, s:{s:i, s:i, s:i}}", "ok", 1, "done",
                     reload_text(result, done, sizeof done), "cameras", "kept", result->kept,
                     "added", result->added, "removed", result->removed, "changed", result->changed,
                     "outputs", "added", result->outputs_added, "removed", result->outputs_removed,
                     "changed", result->outputs_changed);
}

// Refuses a request: the error with reasons, one per line.
static char *reply_refusal(int rc, const char *errors)
{
    return text_of(json_pack("{s:b, s:i, s:o}", "ok", 0, "exit_code",
                             rc == -EINVAL ? EXIT_CONFIG : EXIT_RUNTIME, "errors",
                             lines_json(errors)));
}

// Replies to a reload: 0 with its result, or its error with reasons, one per line.
static char *reply_reload(int rc, const struct reload_result *result, const char *errors)
{
    if (rc == 0)
        return text_of(done_json(result));
    return reply_refusal(rc, errors);
}

static char *reply_done(const char *done)
{
    return text_of(json_pack("{s:b, s:o}", "ok", 1, "done", status_string(done)));
}

static char *reply_jpeg(const uint8_t *file, size_t size)
{
    const size_t room = AV_BASE64_SIZE(size);
    char *text = malloc(room);
    json_t *jpeg =
        text && av_base64_encode(text, (int)room, file, (int)size) ? json_string(text) : NULL;
    free(text);
    return text_of(json_pack("{s:b, s:o}", "ok", 1, "jpeg", jpeg));
}

static char *reply_unknown(void)
{
    return strdup("{\"error\":\"unknown request (status, reload, pause CAMERA, resume CAMERA, "
                  "record CAMERA MILLISECONDS, "
                  "snap CAMERA[/OUTPUT[/PLANE]] WIDTH)\"}");
}

static char *reply_metrics(const struct metrics *metrics)
{
    size_t size;
    char *text = metrics_text(metrics, &size);
    json_t *json = text ? status_string(text) : NULL;
    free(text);
    return text_of(json_pack("{s:b, s:o}", "ok", 1, "metrics", json));
}

static void send_reply(struct request *request, char *text)
{
    control_reply(request->control, text);
    free(request->file);
    free(request);
}

// --- a clip: `record CAMERA MILLISECONDS`

static void add_name(char *names, size_t size, const char *name)
{
    const size_t used = strlen(names);
    snprintf(names + used, size - used, "%s%s", used ? ", " : "", name);
}

static char *record_clip(const struct request *request, const struct metrics *metrics)
{
    char text[512], names[256] = "";
    const struct camera *camera = metrics_camera(metrics, request->camera);
    for (int i = 0; i < metrics->n_cameras; i++) {
        const struct camera *other = metrics->cameras[i];
        if (copies_take_requests(other->subscriptions))
            add_name(names, sizeof names, other->config->name);
    }
    const int n = camera ? copies_request(camera->subscriptions,
                                          monotonic_ns() + request->milliseconds * 1000000)
                         : 0;
    if (n > 0) {
        snprintf(text, sizeof text, "%s: %d output%s write%s a clip that ends in %.10g s",
                 request->camera, n, n == 1 ? "" : "s", n == 1 ? "s" : "",
                 (double)request->milliseconds / 1000);
        log_event(LOG_LEVEL_INFO, "camera=%s a clip was asked for: %d output%s, %.10g s",
                  request->camera, n, n == 1 ? "" : "s", (double)request->milliseconds / 1000);
        return reply_done(text);
    }
    if (camera && copies_take_requests(camera->subscriptions))
        snprintf(text, sizeof text, "camera %s: its outputs with `before` cannot be written now",
                 request->camera);
    else
        snprintf(text, sizeof text, "%s %s%s (%s%s)", camera ? "camera" : "there is no camera",
                 request->camera, camera ? " has no output with kernel copy and `before`" : "",
                 *names ? "cameras that have one: " : "no camera has one", names);
    return reply_refusal(-ENOENT, text);
}

// --- a JPEG: `snap CAMERA[/OUTPUT[/PLANE]] WIDTH`

static void answer_snap(struct preview_reader *reader, struct preview_picture *picture)
{
    struct request *request = (struct request *)((char *)reader - offsetof(struct request, reader));
    char why[PREVIEW_WHY_MAX + 2 * TARGET_NAME_MAX + 8];
    const char *output = request->target.kind.output;
    if (!picture->why[0]) {
        send_reply(request, reply_jpeg(picture->file, picture->size));
        return;
    }
    snprintf(why, sizeof why, "%s%s%s: %s", request->target.camera, *output ? "/" : "", output,
             picture->why);
    send_reply(request, reply_refusal(-EAGAIN, why));
}

static void start_snap(struct request *request, const struct metrics *metrics)
{
    char why[PREVIEW_WHY_MAX];
    request->reader = (struct preview_reader){
        .kind = request->target.kind, .patience_ns = PATIENCE_NS, .take = answer_snap};
    const int rc = target_ask(metrics, request->target.camera, &request->reader, why, sizeof why);
    if (rc < 0)
        send_reply(request, reply_refusal(rc == -ENOENT ? rc : -EAGAIN, why));
}

// --- a pause or its end: `pause CAMERA`, `resume CAMERA`

static void edited(struct reload_request *reload, int rc, const struct reload_result *result,
                   const char *errors)
{
    struct request *request = (struct request *)((char *)reload - offsetof(struct request, reload));
    struct edit *edit = reload->edit;
    char done[64];
    (void)result; // other changes may have shared the reload
    snprintf(done, sizeof done, "camera %s: %s", request->camera, edit_done_text(edit));
    if (rc == -EALREADY)
        snprintf(done, sizeof done, "%.*s", (int)strcspn(errors, "\n"), errors);
    send_reply(request, rc == 0 || rc == -EALREADY ? reply_done(done) : reply_refusal(rc, errors));
    edit_close(edit);
}

static void start_edit(struct request *request, enum edit_kind kind)
{
    struct reload *reload = request->commands->reload;
    request->reload = (struct reload_request){.done = edited};
    if (!reload_has_file(reload))
        send_reply(request,
                   reply_refusal(-ENOENT, "a configuration from standard input has no folder to "
                                          "keep changes in"));
    else if (edit_open(&request->reload.edit, kind, request->camera, reload->file, NULL) < 0)
        send_reply(request, NULL);
    else
        reload_start(reload, &request->reload);
}

// --- all commands

static void reloaded(struct reload_request *reload, int rc, const struct reload_result *result,
                     const char *errors)
{
    struct request *request = (struct request *)((char *)reload - offsetof(struct request, reload));
    send_reply(request, reply_reload(rc, result, errors));
}

static void serve_request(struct request *request)
{
    struct control_commands *commands = request->commands;
    struct metrics metrics;
    if (request->kind == REQUEST_PAUSE || request->kind == REQUEST_RESUME) {
        start_edit(request, request->kind == REQUEST_PAUSE ? EDIT_PAUSE : EDIT_RESUME);
        return;
    }
    if (request->kind == REQUEST_RELOAD) {
        request->reload.done = reloaded;
        reload_start(commands->reload, &request->reload);
        return;
    }
    commands->snapshot(commands->opaque, &metrics);
    if (request->kind == REQUEST_RECORD)
        send_reply(request, record_clip(request, &metrics));
    else if (request->kind == REQUEST_SNAP)
        start_snap(request, &metrics);
    else if (request->kind == REQUEST_METRICS)
        send_reply(request, reply_metrics(&metrics));
    else
        send_reply(request, status_text(commands->status, &metrics));
}

static struct control_commands *commands_of(struct work *work)
{
    return (struct control_commands *)((char *)work - offsetof(struct control_commands, check));
}

static void check_file(struct work *work)
{
    struct control_commands *commands = commands_of(work);
    size_t size;
    FILE *errors = open_memstream(&commands->errors, &size);
    commands->is_ours = errors && reload_is_of(commands->reload, commands->first->file, errors);
    if (errors)
        fclose(errors);
}

static void file_was_checked(struct work *work)
{
    struct control_commands *commands = commands_of(work);
    struct request *request = commands->first;
    if (!(commands->first = request->next))
        commands->last = &commands->first;
    if (commands->is_ours)
        serve_request(request);
    else
        send_reply(request, commands->errors ? reply_refusal(-ENOENT, commands->errors) : NULL);
    free(commands->errors);
    commands->errors = NULL;
    if (commands->first)
        work_start(commands->work, &commands->check);
}

static void start_check(struct request *request)
{
    struct control_commands *commands = request->commands;
    *commands->last = request;
    commands->last = &request->next;
    if (commands->first == request)
        work_start(commands->work, &commands->check);
}

// The words of the requests. Taking a picture only reads; writing a clip does not.
static const struct {
    const char *word;
    bool changes;
} request_kinds[REQUESTS] = {
    [REQUEST_STATUS] = {"status", false},   [REQUEST_RELOAD] = {"reload", true},
    [REQUEST_RECORD] = {"record", true},    [REQUEST_SNAP] = {"snap", false},
    [REQUEST_PAUSE] = {"pause", true},      [REQUEST_RESUME] = {"resume", true},
    [REQUEST_METRICS] = {"metrics", false},
};

// Parses the arguments of `snap`. Returns the bytes read; negative: malformed.
static int read_snap(struct request *request, const char *text)
{
    char target[2 * TARGET_NAME_MAX + 4];
    int width, used;
    if (sscanf(text, " %65[A-Za-z0-9_/-] %4d%n", target, &width, &used) != 2 ||
        !target_read(&request->target, target) || width < PREVIEW_WIDTH_MIN ||
        width > PREVIEW_WIDTH_MAX)
        return -1;
    request->target.kind.width = width;
    return used;
}

// Parses the arguments of the command. Returns the bytes read; negative: malformed.
static int read_arguments(struct request *request, const char *text)
{
    int used = -1;
    switch (request->kind) {
    case REQUEST_RECORD:
        if (sscanf(text, " %31[A-Za-z0-9_-] %9lld%n", request->camera, &request->milliseconds,
                   &used) != 2 ||
            request->milliseconds < RECORD_MS_MIN || request->milliseconds > RECORD_MS_MAX)
            return -1;
        return used;
    case REQUEST_SNAP:
        return read_snap(request, text);
    case REQUEST_PAUSE:
    case REQUEST_RESUME:
        return sscanf(text, " %23[A-Za-z0-9_-]%n", request->camera, &used) == 1 ? used : -1;
    default:
        return 0;
    }
}

// Parses the line up to the file, to which *file points after a blank; NULL: there is none. False:
// malformed.
static bool parse_request(struct request *request, const char *line, const char **file)
{
    const size_t n = strcspn(line, " ");
    int kind = 0;
    while (kind < REQUESTS && (strlen(request_kinds[kind].word) != n ||
                               strncmp(line, request_kinds[kind].word, n) != 0))
        kind++;
    const char *rest = line + n;
    request->kind = (enum request_kind)kind;
    const int used = read_arguments(request, rest);
    if (used < 0)
        return false;
    rest += used;
    *file = *rest ? rest + 1 : NULL;
    return kind < REQUESTS && (!*rest || (*rest == ' ' && rest[1]));
}

void control_commands_handle(void *opaque, struct control_request *control, const char *line)
{
    struct request parsed = {.commands = opaque, .control = control};
    const char *named;
    if (!parse_request(&parsed, line, &named)) {
        control_reply(control, reply_unknown());
        return;
    }
    if (request_kinds[parsed.kind].changes && !control_may_change(control)) {
        control_reply(control, reply_refusal(-EACCES, "only root, the user that runs framed and "
                                                      "members of the group " ADMIN_GROUP
                                                      " may change what it does"));
        return;
    }
    struct request *request = calloc(1, sizeof *request);
    char *file = named ? strdup(named) : NULL;
    if (!request || (named && !file)) {
        free(file);
        free(request);
        control_reply(control, NULL);
        return;
    }
    *request = parsed;
    request->file = file;
    if (file)
        start_check(request);
    else
        serve_request(request);
}

void control_commands_open(struct control_commands *commands)
{
    commands->last = &commands->first;
    commands->check = (struct work){.run = check_file, .done = file_was_checked};
}
