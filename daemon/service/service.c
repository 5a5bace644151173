#include "daemon/service/service.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/address.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/service/control_commands.h"
#include "daemon/service/event_log.h"
#include "daemon/service/history.h"
#include "daemon/service/routes.h"
#include "daemon/service/status.h"
#include "daemon/service/views.h"

enum { TOUCH_SAMPLES = 10 }; // between keepalives for clients that follow events

// Prepared by a reload.
struct next {
    bool moves_control, moves_http;
    char control_path[SOCKET_PATH_MAX + 1];
    struct control_place *place; // NULL: closes the control socket
    struct http *http;           // NULL: closes HTTP
    char *token, *read_token;    // if HTTP stays
    bool may_write;
    enum ready_when ready;
};

struct service {
    struct service_context context;
    struct status status;
    struct history *history;
    struct event_log *events;
    unsigned ticks;
    struct control *control;
    struct control_commands commands;
    char control_path[SOCKET_PATH_MAX + 1]; // where it should listen; "": nowhere
    struct http *http;                      // NULL: none
    struct routes_context routes;
    bool may_write;
    enum ready_when ready;
    uv_timer_t timer;
    struct next next;
};

static void sample(struct service *service)
{
    struct metrics metrics;
    service->context.snapshot(service->context.opaque, &metrics);
    status_sample(&service->status, &metrics);
    if (service->ticks % (HISTORY_INTERVAL_MS / LOAD_SAMPLE_MS) == 0)
        history_sample(service->history, &metrics, monotonic_ns());
    if (service->ticks % TOUCH_SAMPLES == 0)
        event_log_touch(service->events);
    service->ticks++;
}

int service_more_cameras(const struct service *service)
{
    struct metrics metrics;
    service->context.snapshot(service->context.opaque, &metrics);
    return load_more_cameras(&service->status.load, &metrics);
}

static void tick(uv_timer_t *timer)
{
    struct service *service = timer->data;
    sample(service);
    control_check_path(service->control);
    http_check_path(service->http);
}

// --- control

// Makes the default path's own folder; the folders above belong to the system.
static void make_folder(const char *path)
{
    char folder[SOCKET_PATH_MAX + 1];
    strcpy(folder, path);
    mkdir(dirname(folder), 0755); // if it fails, listening reports a better reason
}

// Returns 0 with an empty path if it is off.
static int find_control(const struct config *config, char *path)
{
    int rc = control_path(&config->control, path);
    if (rc < 0)
        path[0] = 0;
    else if (config->control.at.kind == SINK_NONE)
        make_folder(path);
    return rc == -ENOENT ? 0 : rc;
}

static const char TOO_LONG[] = "its path is too long for a socket";

static void tell_control(const char *path)
{
    if (*path)
        log_event(LOG_LEVEL_INFO, "control socket %s", path);
}

static int open_control(struct service *service)
{
    const struct service_context *context = &service->context;
    const bool named = context->config->control.at.kind != SINK_NONE;
    struct control_place *place = NULL;
    char *path = service->control_path, why[256];
    int rc = control_open(&service->control, context->loop, NULL, control_commands_handle,
                          &service->commands, why, sizeof why);
    if (rc < 0) {
        log_event(LOG_LEVEL_ERROR, "no control socket: %s", why);
        return rc;
    }
    strcpy(why, TOO_LONG);
    rc = find_control(context->config, path);
    if (rc == 0 && *path)
        rc = control_place_open(&place, service->control, path, why, sizeof why);
    control_move(service->control, place);
    if (rc == 0)
        tell_control(path);
    else
        log_event(named ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, "no control socket: %s", why);
    return named ? rc : 0;
}

// --- HTTP

static void take_snapshot(void *opaque, struct metrics *ret)
{
    struct service *service = opaque;
    service->context.snapshot(service->context.opaque, ret);
    ret->ready = service->ready;
    ret->http_write = service->may_write;
    ret->up_ns = monotonic_ns() - service->status.started_ns;
    ret->status = &service->status;
    ret->history = service->history;
    ret->viewers = view_streams_count(service->routes.views);
}

static void tell_http(const struct http *http)
{
    const struct sink_address *at = http_address(http);
    if (at->kind == SINK_TCP)
        log_event(LOG_LEVEL_INFO, "http on %s port %d", address_host(at), http_port(http));
    else
        log_event(LOG_LEVEL_INFO, "http on %s", at->path);
}

// Sets *ret to NULL if the configuration has no HTTP.
static int make_http(struct service *service, const struct config *config, struct http **ret,
                     char *why, size_t size)
{
    const struct http_options options = {
        .loop = service->context.loop,
        .address = &config->http.at,
        .token = config->http_token,
        .read_token = config->http_read_token,
        .may_write = config->http_write,
        .routes = routes_table,
        .n_routes = routes_count,
        .opaque = &service->routes,
    };
    *ret = NULL;
    return options.address->kind == SINK_NONE ? 0 : http_open(ret, &options, why, size);
}

static int open_http(struct service *service)
{
    char why[256];
    int rc = make_http(service, service->context.config, &service->http, why, sizeof why);
    if (rc < 0)
        log_event(LOG_LEVEL_ERROR, "no http: %s", why);
    else if (service->http)
        tell_http(service->http);
    return rc;
}

// --- a reload

struct new_config {
    struct service *service;
    const struct config *config;
    const char *file;
    FILE *errors;
};

static int prepare_control(const struct new_config *new)
{
    struct service *service = new->service;
    struct next *next = &service->next;
    char why[256];
    strcpy(why, TOO_LONG);
    int rc = find_control(new->config, next->control_path);
    next->moves_control = rc == 0 && strcmp(next->control_path, service->control_path) != 0;
    if (next->moves_control && *next->control_path)
        rc =
            control_place_open(&next->place, service->control, next->control_path, why, sizeof why);
    if (rc < 0)
        mistake_print(new->errors, &new->config->files, new->config->control_place, "control", why);
    return rc;
}

static bool same_address(const struct sink_address *a, const struct sink_address *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == SINK_TCP)
        return a->port == b->port && strcmp(address_host(a), address_host(b)) == 0;
    return a->kind == SINK_NONE || strcmp(a->path, b->path) == 0;
}

static int prepare_tokens(const struct new_config *new)
{
    const char *token = new->config->http_token, *read_token = new->config->http_read_token;
    struct next *next = &new->service->next;
    next->token = token ? strdup(token) : NULL;
    next->read_token = read_token ? strdup(read_token) : NULL;
    return (token && !next->token) || (read_token && !next->read_token) ? -ENOMEM : 0;
}

static int prepare_http(const struct new_config *new)
{
    static const struct sink_address nowhere = {.kind = SINK_NONE};
    struct service *service = new->service;
    const struct sink_address *now = service->http ? http_address(service->http) : &nowhere;
    const struct sink_address *then = &new->config->http.at;
    char why[256];
    service->next.moves_http = !same_address(now, then);
    if (!service->next.moves_http)
        return prepare_tokens(new);
    int rc = make_http(service, new->config, &service->next.http, why, sizeof why);
    if (rc == -EADDRINUSE && now->kind == SINK_TCP && then->kind == SINK_TCP &&
        now->port == then->port)
        snprintf(why, sizeof why,
                 "is served on %s port %d, whose host no reload can change (another port, or a "
                 "restart of framed)",
                 address_host(now), now->port);
    if (rc < 0)
        mistake_print(new->errors, &new->config->files, new->config->http_place, "http", why);
    return rc;
}

int service_prepare(struct service *service, const struct config *config, const char *file,
                    FILE *errors)
{
    const struct new_config new = {service, config, file, errors};
    service->next = (struct next){.ready = config->ready, .may_write = config->http_write};
    int control = prepare_control(&new), http = prepare_http(&new);
    if (control == 0 && http == 0)
        return 0;
    service_abandon(service);
    return control == -ENOMEM || http == -ENOMEM ? -ENOMEM : -EINVAL;
}

void service_abandon(struct service *service)
{
    control_place_close(service->next.place);
    http_close(service->next.http);
    free(service->next.token);
    free(service->next.read_token);
    service->next = (struct next){0};
}

void service_commit(struct service *service)
{
    struct next *next = &service->next;
    if (next->moves_control) {
        control_move(service->control, next->place);
        strcpy(service->control_path, next->control_path);
        tell_control(service->control_path);
    }
    if (next->moves_http) {
        http_close(service->http);
        service->http = next->http;
        if (service->http)
            tell_http(service->http);
    } else if (service->http) {
        http_permit(service->http, next->token, next->read_token, next->may_write);
    }
    service->ready = next->ready;
    service->may_write = next->may_write;
    *next = (struct next){0};
}

// --- events

void service_camera_changed(struct service *service, struct camera *camera)
{
    struct camera_change change;
    while (service && camera_report_take_change(&camera->report, &change))
        event_log_change(service->events, camera->config->name, &change);
}

void service_reloaded(struct service *service)
{
    const struct reload *reload = service ? service->context.reload : NULL;
    if (reload)
        event_log_reload(service->events, reload->tried_ns, reload->is_applied,
                         reload->is_applied ? reload->done : reload->error);
}

void service_edited(struct service *service, const struct edit *edit)
{
    if (service)
        event_log_edit(service->events, realtime_ns(), edit);
}

// --- life

static int open_streams(struct service *service)
{
    const struct event_streams_context streams = {
        .loop = service->context.loop,
        .log = service->events,
        .snapshot = take_snapshot,
        .opaque = service,
    };
    const struct camera_finder_context finder = {
        .loop = service->context.loop,
        .snapshot = take_snapshot,
        .opaque = service,
    };
    const struct view_streams_context views = {
        .loop = service->context.loop,
        .snapshot = take_snapshot,
        .opaque = service,
    };
    int rc = event_streams_open(&service->routes.streams, &streams);
    if (rc == 0)
        rc = camera_finder_open(&service->routes.finder, &finder);
    return rc == 0 ? view_streams_open(&service->routes.views, &views) : rc;
}

int service_open(struct service **ret, const struct service_context *context)
{
    struct service *service = calloc(1, sizeof *service);
    if (!service) {
        log_event(LOG_LEVEL_ERROR, "no control socket: %s", strerror(ENOMEM));
        return -ENOMEM;
    }
    service->context = *context;
    service->commands = (struct control_commands){.reload = context->reload,
                                                  .work = context->work,
                                                  .status = &service->status,
                                                  .snapshot = context->snapshot,
                                                  .opaque = context->opaque};
    control_commands_open(&service->commands);
    service->routes = (struct routes_context){
        .reload = context->reload, .snapshot = take_snapshot, .opaque = service};
    status_open(&service->status);
    uv_timer_init(context->loop, &service->timer);
    service->timer.data = service;
    int rc = history_open(&service->history);
    if (rc == 0)
        rc = event_log_open(&service->events);
    if (rc == 0)
        rc = open_streams(service);
    if (rc < 0)
        log_event(LOG_LEVEL_ERROR, "no history: %s", strerror(-rc));
    if (rc == 0)
        rc = open_control(service);
    if (rc == 0)
        rc = open_http(service);
    service->ready = context->config->ready;
    service->may_write = context->config->http_write;
    service->context.config = NULL;
    if (rc < 0) {
        service_close(service);
        return rc;
    }
    uv_timer_start(&service->timer, tick, 0, LOAD_SAMPLE_MS);
    *ret = service;
    return 0;
}

static void free_service(uv_handle_t *handle)
{
    struct service *service = handle->data;
    history_close(service->history);
    event_log_close(service->events);
    free(service);
}

void service_close(struct service *service)
{
    if (!service)
        return;
    control_close(service->control);
    http_close(service->http);
    event_streams_close(service->routes.streams);
    camera_finder_close(service->routes.finder);
    view_streams_close(service->routes.views);
    uv_close((uv_handle_t *)&service->timer, free_service);
}
