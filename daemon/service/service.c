#include "daemon/service/service.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/address.h"
#include "daemon/service/answer.h"
#include "daemon/service/control.h"
#include "daemon/service/log.h"
#include "daemon/service/pages.h"
#include "daemon/service/status.h"

struct service {
    struct service_context context;
    struct status status;
    struct control *control; // NULL: there is none
    struct http *http;       // likewise
    uv_timer_t samples;
};

static void sample(uv_timer_t *timer)
{
    struct service *service = timer->data;
    struct metrics metrics;
    service->context.look(service->context.opaque, &metrics);
    status_sample(&service->status, &metrics);
}

// --- control

// `file`: of a client that means a framed with that configuration alone; NULL: this one.
static char *reload(struct service *service, const struct reload *state, const char *file)
{
    struct reload_result result;
    char *reasons = NULL;
    size_t size;
    FILE *to = open_memstream(&reasons, &size);
    if (!to)
        return NULL;
    int rc = -ENOENT;
    if (!file || reload_is_of(state, file, to))
        rc = service->context.reload(service->context.opaque, to, &result);
    fclose(to);
    char *text = reasons ? answer_reload(rc, &result, reasons) : NULL;
    free(reasons);
    return text;
}

static char *status_of(const struct service *service, const struct metrics *metrics,
                       const char *file)
{
    char *reasons = NULL, *text = NULL;
    size_t size;
    FILE *to = open_memstream(&reasons, &size);
    if (!to)
        return NULL;
    const bool same = reload_is_of(metrics->reload, file, to);
    if (fclose(to) == 0)
        text = same ? status_text(&service->status, metrics) : answer_refusal(-ENOENT, reasons);
    free(reasons);
    return text;
}

static char *answer(void *opaque, const char *request)
{
    static const char reload_word[] = "reload ", status_word[] = "status ";
    struct service *service = opaque;
    struct metrics metrics;
    service->context.look(service->context.opaque, &metrics);
    if (strcmp(request, "status") == 0)
        return status_text(&service->status, &metrics);
    if (strncmp(request, status_word, strlen(status_word)) == 0)
        return status_of(service, &metrics, request + strlen(status_word));
    if (strcmp(request, "reload") == 0)
        return reload(service, metrics.reload, NULL);
    if (strncmp(request, reload_word, strlen(reload_word)) == 0)
        return reload(service, metrics.reload, request + strlen(reload_word));
    return answer_unknown();
}

// The default place's own folder; what is above it is the system's.
static void make_folder(const char *path)
{
    char folder[SOCKET_PATH_MAX + 1];
    strcpy(folder, path);
    mkdir(dirname(folder), 0755); // if it fails, listening has a better reason
}

static int open_control(struct service *service)
{
    const struct service_context *context = &service->context;
    const struct control_address *address = &context->config->control;
    const bool named = address->at.kind != SINK_NONE;
    char path[SOCKET_PATH_MAX + 1], why[256] = "its path is too long for a socket";
    int rc = control_path(address, path);
    if (rc == -ENOENT)
        return 0;
    if (rc == 0 && !named)
        make_folder(path);
    if (rc == 0)
        rc = control_open(&service->control, context->loop, path, answer, service, why, sizeof why);
    if (rc == 0)
        log_event(LOG_LEVEL_INFO, "control socket %s", path);
    else
        log_event(named ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, "no control socket: %s", why);
    return named ? rc : 0;
}

// --- HTTP

static bool get_page(void *opaque, const char *path, struct http_page *ret)
{
    struct service *service = opaque;
    struct metrics metrics;
    service->context.look(service->context.opaque, &metrics);
    return pages_get(&metrics, path, ret);
}

static void tell_where(const struct service *service)
{
    const struct sink_address *at = &service->context.config->http.at;
    if (at->kind == SINK_TCP)
        log_event(LOG_LEVEL_INFO, "http on %s port %d", address_host(at), http_port(service->http));
    else
        log_event(LOG_LEVEL_INFO, "http on %s", at->path);
}

static int open_http(struct service *service)
{
    const struct service_context *context = &service->context;
    const struct http_options options = {
        .loop = context->loop,
        .address = &context->config->http.at,
        .token = context->config->http_token,
        .page = get_page,
        .opaque = service,
    };
    char why[256];
    if (options.address->kind == SINK_NONE)
        return 0;
    int rc = http_open(&service->http, &options, why, sizeof why);
    if (rc == 0)
        tell_where(service);
    else
        log_event(LOG_LEVEL_ERROR, "no http: %s", why);
    return rc;
}

// --- life

int service_open(struct service **ret, const struct service_context *context)
{
    struct service *service = calloc(1, sizeof *service);
    if (!service) {
        log_event(LOG_LEVEL_ERROR, "no control socket: %s", strerror(ENOMEM));
        return -ENOMEM;
    }
    service->context = *context;
    status_open(&service->status);
    uv_timer_init(context->loop, &service->samples);
    service->samples.data = service;
    int rc = open_control(service);
    if (rc == 0)
        rc = open_http(service);
    service->context.config = NULL;
    if (rc < 0) {
        service_close(service);
        return rc;
    }
    uv_timer_start(&service->samples, sample, 0, STATUS_SAMPLE_MS);
    *ret = service;
    return 0;
}

static void free_service(uv_handle_t *handle)
{
    free(handle->data);
}

void service_close(struct service *service)
{
    if (!service)
        return;
    control_close(service->control);
    http_close(service->http);
    uv_close((uv_handle_t *)&service->samples, free_service);
}
