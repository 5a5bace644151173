#include "daemon/output/result_lines.h"

#include <errno.h>
#include <stdlib.h>

#include "config/address.h"
#include "config/object.h"

// Makes no line without a reader.
static void take_result(struct results_receiver *receiver, const struct found *found)
{
    struct result_lines *lines = (struct result_lines *)receiver;
    if (!lines->is_followed && lines->config.sink.kind != SINK_FILE &&
        (!lines->sink || sink_clients(lines->sink) == 0))
        return;
    const size_t bytes = result_line(lines->line, found, &lines->labels);
    line_queue_add(lines->queue, lines->line, bytes, found->frame.capture_ns);
    if (lines->sink)
        sink_pump(lines->sink);
}

int result_lines_open(struct result_lines **ret, const struct output_config *output,
                      struct results *results)
{
    struct result_lines *lines = calloc(1, sizeof *lines);
    if (!lines)
        return -ENOMEM;
    lines->results = results;
    lines->output.name = results->options.config->name;
    lines->receiver.take = take_result;
    results_add_receiver(results, &lines->receiver);
    lines->line = malloc(LINE_BYTES_MAX);
    int rc = lines->line ? detections_copy(&lines->output, output) : -ENOMEM;
    if (rc == 0)
        rc = line_labels_open(&lines->labels, &lines->output.detections.labels);
    if (rc == 0)
        rc = line_queue_open(&lines->queue);
    if (rc < 0) {
        result_lines_close(lines);
        return rc;
    }
    lines->config = detections_as_output(&lines->output);
    *ret = lines;
    return 0;
}

static void sink_was_closed(void *opaque)
{
    struct result_lines *lines = opaque;
    lines->sink = NULL;
    lines->closed(lines, lines->opaque);
}

static void log_sink(const struct result_lines *lines)
{
    const struct sink_address *at = &lines->config.sink;
    if (at->kind == SINK_TCP)
        sink_event(lines->sink, LOG_LEVEL_INFO, "detections: listens on tcp %s port %d",
                   address_host(at), sink_port(lines->sink));
    else
        sink_event(lines->sink, LOG_LEVEL_INFO, "detections: %s %s",
                   at->kind == SINK_FILE ? "writes" : "listens on", at->path);
}

static void log_failure(const struct result_lines *lines, const char *camera, const char *why)
{
    log_camera(camera);
    log_event(LOG_LEVEL_ERROR, "output=%s detections: %s", lines->config.name, why);
    log_camera(NULL);
}

int result_lines_listen(struct result_lines *lines, uv_loop_t *loop, const char *camera,
                        struct last_error *last_error,
                        void (*closed)(struct result_lines *, void *opaque), void *opaque)
{
    char why[256] = "";
    const struct sink_context context = {
        .loop = loop,
        .camera = camera,
        .config = &lines->config,
        .lines = lines->queue,
        .account = &lines->results->lines,
        .last_error = last_error,
        .closed = sink_was_closed,
        .opaque = lines,
    };
    lines->closed = closed;
    lines->opaque = opaque;
    int rc = sink_open(&lines->sink, &context, why, sizeof why);
    if (rc == 0)
        log_sink(lines);
    else if (!lines->refused)
        log_failure(lines, camera, why);
    if (rc < 0)
        last_error_set(last_error, why);
    lines->refused = rc < 0;
    return rc;
}

void result_lines_finish(struct result_lines *lines, int grace_ms)
{
    results_remove_receiver(lines->results, &lines->receiver);
    lines->finished = true;
    if (!lines->sink)
        return;
    sink_yield(lines->sink, NULL);
    sink_finish(lines->sink, grace_ms);
}

void result_lines_close(struct result_lines *lines)
{
    if (!lines)
        return;
    results_remove_receiver(lines->results, &lines->receiver);
    lines->output.name = NULL; // belongs to the output
    detections_free(&lines->output);
    line_labels_close(&lines->labels);
    line_queue_close(lines->queue);
    free(lines->line);
    free(lines);
}
