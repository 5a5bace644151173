#include "daemon/output.h"

#include "daemon/service/log.h"

static void slots_were_done(struct letter *letter)
{
    struct output *output = (struct output *)((char *)letter - offsetof(struct output, letter));
    if (output->sink)
        sink_pump(output->sink);
}

// Clients of a ring map its slots; nobody but us sees those of other sinks.
static enum region_kind slots_kind(const struct output_config *config)
{
    if (config->sink.kind != SINK_RING)
        return REGION_PRIVATE;
    return config->memory == MEMORY_CUDA ? REGION_DEVICE : REGION_SHARED;
}

int output_open(struct output *output, const char *camera, const struct output_config *config)
{
    struct slots_options options = {
        .n = config->slots,
        .name = config->name,
        .kind = slots_kind(config),
        .ledger = &output->ledger,
    };
    *output = (struct output){
        .camera = camera,
        .config = config,
        .rate.fps = config->fps,
        .letter.read = slots_were_done,
    };
    output_config_op(config, &output->params);
    return slots_open(&output->slots, &options);
}

void output_close(struct output *output)
{
    slots_close(output->slots);
    output->slots = NULL;
}

static void sink_was_closed(void *opaque)
{
    struct output *output = opaque;
    output->sink = NULL;
    output->closed(output);
}

static void tell_where(const struct output *output)
{
    const struct sink_address *sink = &output->config->sink;
    const char *name = output->config->name;
    if (sink->kind == SINK_TCP)
        log_event(LOG_LEVEL_INFO, "output=%s listens on tcp %s port %d", name,
                  sink->host ? sink->host : "127.0.0.1", sink_port(output->sink));
    else if (sink->kind == SINK_UNIX || sink->kind == SINK_RING)
        log_event(LOG_LEVEL_INFO, "output=%s listens on %s", name, sink->path);
    else
        log_event(LOG_LEVEL_INFO, "output=%s writes %s", name, sink->path);
}

int output_listen(struct output *output, uv_loop_t *loop, void (*closed)(struct output *),
                  void *owner)
{
    char why[256] = "";
    struct sink_context context = {
        .loop = loop,
        .camera = output->camera,
        .config = output->config,
        .slots = output->slots,
        .closed = sink_was_closed,
        .opaque = output,
    };
    output->closed = closed;
    output->owner = owner;
    slots_listeners(output->slots, 0);
    int rc = sink_open(&output->sink, &context, why, sizeof why);
    log_camera(output->camera);
    if (rc == 0)
        tell_where(output);
    else if (!output->refused)
        log_event(LOG_LEVEL_ERROR, "output=%s %s", output->config->name, why);
    log_camera(NULL);
    output->refused = rc < 0;
    if (rc < 0)
        slots_listeners(output->slots, SLOTS_NO_SINK);
    return rc;
}

void output_finish(struct output *output, int grace_ms)
{
    output->finished = true;
    if (output->sink)
        sink_finish(output->sink, grace_ms);
}
