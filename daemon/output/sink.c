#include "daemon/output/sink.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "config/address.h"
#include "config/object.h"

int sink_open(struct sink **ret, const struct sink_context *context, char *why, size_t size)
{
    const struct output_config *config = context->config;
    const enum sink_kind kind = config->sink.kind;
    if (kind == SINK_FILE || kind == SINK_RTSP)
        return writer_sink.open(ret, context, why, size);
    return server_open(ret,
                       config->protocol == PROTOCOL_LINES ? &line_server
                       : kind == SINK_RING                ? &ring_server
                                                          : &socket_server,
                       context, why, size);
}

static void log_address(const struct sink *sink, const char *what)
{
    const struct output_config *config = sink->context.config;
    const struct sink_address *address = &config->sink;
    char url[512];
    if (address->kind == SINK_TCP)
        sink_event(sink, LOG_LEVEL_INFO, "%slistens on tcp %s port %d", what, address_host(address),
                   sink_port(sink));
    else if (address->kind == SINK_RTSP)
        sink_event(sink, LOG_LEVEL_INFO, "%spublishes to %s", what,
                   config_sink_url(config, url, sizeof url));
    else
        sink_event(sink, LOG_LEVEL_INFO, "%s%s %s", what,
                   address->kind == SINK_FILE ? "writes" : "listens on", address->path);
}

int sink_try_open(struct sink **ret, const struct sink_context *context, const char *what,
                  bool *refused)
{
    char why[256] = "";
    int rc = sink_open(ret, context, why, sizeof why);
    if (rc == 0) {
        log_address(*ret, what);
    } else {
        last_error_set(context->last_error, why);
        log_camera(context->camera);
        if (!*refused)
            log_event(LOG_LEVEL_ERROR, "output=%s %s%s", context->config->name, what, why);
        log_camera(NULL);
    }
    *refused = rc < 0;
    return rc;
}

int sink_prepare(struct listener *ret, const struct output_config *config,
                 const struct sink *before, char *why, size_t size)
{
    if (config->sink.kind == SINK_FILE)
        return file_check(config, before != NULL, why, size);
    if (config->sink.kind == SINK_RTSP)
        return 0; // only publishing shows whether the server accepts it
    struct listener_options options = sink_listener_options(config);
    options.ours = sink_listener(before);
    return listener_open(ret, &options, why, size);
}

void sink_pump(struct sink *sink)
{
    if (sink)
        sink->driver->pump(sink);
}

void sink_finish(struct sink *sink, int grace_ms)
{
    if (sink)
        sink->driver->finish(sink, grace_ms);
}

int sink_clients(const struct sink *sink)
{
    return sink ? sink->driver->clients(sink) : 0;
}

struct listener_options sink_listener_options(const struct output_config *config)
{
    return (struct listener_options){
        .address = &config->sink, .mode = config->mode.mode, .output = config};
}

void sink_event(const struct sink *sink, enum log_level level, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (level <= LOG_LEVEL_WARNING && sink->context.last_error)
        last_error_set(sink->context.last_error, text);
    log_camera(sink->context.camera);
    log_event(level, "output=%s %s", sink->context.config->name, text);
    log_camera(NULL);
}
