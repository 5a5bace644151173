#include "daemon/output/sink.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int sink_open(struct sink **ret, const struct sink_context *context, char *why, size_t size)
{
    static const struct sink_driver *const drivers[] = {
        [SINK_UNIX] = &socket_sink, [SINK_TCP] = &socket_sink,  [SINK_RING] = &ring_sink,
        [SINK_FILE] = &writer_sink, [SINK_RTSP] = &writer_sink,
    };
    const struct output_config *config = context->config;
    const bool lines = config->protocol == PROTOCOL_LINES && config->sink.kind != SINK_FILE;
    const struct sink_driver *driver = lines ? &line_sink : drivers[config->sink.kind];
    return driver->open(ret, context, why, size);
}

static const struct listener *listener_of(const struct sink *sink)
{
    return sink->driver->listener ? sink->driver->listener(sink) : NULL;
}

int sink_prepare(struct listener *ret, const struct output_config *config,
                 const struct sink *before, char *why, size_t size)
{
    if (config->sink.kind == SINK_FILE)
        return file_check(config, before != NULL, why, size);
    if (config->sink.kind == SINK_RTSP)
        return 0; // only publishing shows whether the server accepts it
    struct listener_options options = sink_listener_options(config);
    options.ours = before ? listener_of(before) : NULL;
    return listener_open(ret, &options, why, size);
}

void sink_pump(struct sink *sink)
{
    sink->driver->pump(sink);
}

void sink_finish(struct sink *sink, int grace_ms)
{
    sink->driver->finish(sink, grace_ms);
}

void sink_yield(struct sink *sink, struct listener *ret)
{
    if (sink->driver->yield)
        sink->driver->yield(sink, ret);
}

void sink_check_path(struct sink *sink)
{
    if (sink->driver->check_path)
        sink->driver->check_path(sink);
}

int sink_clients(const struct sink *sink)
{
    return sink->driver->clients(sink);
}

struct sink_client sink_client(const struct sink *sink, int i)
{
    return sink->driver->client ? sink->driver->client(sink, i) : (struct sink_client){0};
}

int sink_port(const struct sink *sink)
{
    return sink->driver->port ? sink->driver->port(sink) : 0;
}

struct listener_options sink_listener_options(const struct output_config *config)
{
    return (struct listener_options){
        .address = &config->sink, .mode = config->mode.mode, .output = config};
}

void sink_event(const struct sink *sink, enum log_level level, const char *format, ...)
{
    char text[512];
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
