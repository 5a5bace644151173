#include "daemon/output/result_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/address.h"
#include "config/object.h"
#include "config/types.h"
#include "daemon/output/lines.h"

// --- one line

static int64_t round_to_integer(double value)
{
    return (int64_t)(value < 0 ? value - 0.5 : value + 0.5);
}

// Writes a finite number with four decimals, and with an exponent from 1e9 on.
static char *put_score(char *to, double score)
{
    int exponent = 0;
    for (; score >= 1e9 || score <= -1e9; exponent++)
        score /= 10;
    to = json_put_decimal(to, round_to_integer(score * 1e4), 4);
    return exponent ? json_put_unsigned(json_put(to, "e"), (uint64_t)exponent) : to;
}

static char *put_pixels(char *to, float at)
{
    return json_put_decimal(to, round_to_integer((double)at * 100), 2);
}

int line_labels_open(struct line_labels *ret, const struct labels *labels)
{
    *ret = (struct line_labels){0};
    for (const char *label = NULL; (label = text_list_next(&labels->list, label));)
        ret->n++;
    if (ret->n == 0)
        return 0;
    ret->text = malloc(6 * labels->list.bytes + 2 * (size_t)ret->n);
    ret->end = calloc((size_t)ret->n, sizeof *ret->end);
    if (!ret->text || !ret->end) {
        line_labels_close(ret);
        return -ENOMEM;
    }
    char *to = ret->text;
    int i = 0;
    for (const char *label = NULL; (label = text_list_next(&labels->list, label));) {
        to = json_put_text(to, label);
        ret->end[i++] = (size_t)(to - ret->text);
    }
    return 0;
}

void line_labels_close(struct line_labels *labels)
{
    free(labels->text);
    free(labels->end);
    *labels = (struct line_labels){0};
}

static char *put_label(char *to, const struct line_labels *labels, int class_id)
{
    if (class_id >= labels->n)
        return to;
    const size_t from = class_id > 0 ? labels->end[class_id - 1] : 0,
                 bytes = labels->end[class_id] - from;
    to = json_put(to, ",\"label\":");
    memcpy(to, labels->text + from, bytes);
    return to + bytes;
}

static char *put_object(char *to, const struct found *found, int i,
                        const struct line_labels *labels)
{
    const struct framed_detection *object = &found->list[i];
    to = put_pixels(json_put(to, "{\"box\":["), object->x1);
    to = put_pixels(json_put(to, ","), object->y1);
    to = put_pixels(json_put(to, ","), object->x2);
    to = put_pixels(json_put(to, ","), object->y2);
    to = put_score(json_put(to, "],\"score\":"), (double)object->score);
    to = json_put_unsigned(json_put(to, ",\"class\":"), object->class_id);
    to = put_label(to, labels, object->class_id);
    if (object->track != 0)
        to = json_put_signed(json_put(to, ",\"track\":"), object->track);
    if (found->index[i] != i)
        to = json_put_unsigned(json_put(to, ",\"index\":"), found->index[i]);
    return json_put(to, "}");
}

static char *put_frame(char *to, const struct found *found)
{
    to = json_put_text(json_put(to, "{\"camera\":"), found->camera);
    to = json_put_text(json_put(to, ",\"output\":"), found->output);
    if (*found->region)
        to = json_put_text(json_put(to, ",\"region\":"), found->region);
    if (found->parts > 1) {
        to = json_put_signed(json_put(to, ",\"part\":"), found->part);
        to = json_put_signed(json_put(to, ",\"parts\":"), found->parts);
    }
    if (found->object >= 0) {
        to = json_put_unsigned(json_put(to, ",\"parent_seq\":"), found->parent_sequence);
        to = json_put_signed(json_put(to, ",\"object\":"), found->object);
    }
    to = json_put_unsigned(json_put(to, ",\"seq\":"), found->sequence);
    to = json_put_unsigned(json_put(to, ",\"epoch\":"), found->frame.epoch);
    to = json_put_seconds(json_put(to, ",\"time\":"), found->frame.capture_ns);
    to = json_put_seconds(json_put(to, ",\"pts\":"), found->frame.pts_ns);
    const int64_t latency_ns = found->result_ns - found->frame.received_ns;
    to = json_put_decimal(json_put(to, ",\"latency_ms\":"), latency_ns / 100000, 1);
    to = json_put_signed(json_put(to, ",\"width\":"), found->frame.source_width);
    to = json_put_signed(json_put(to, ",\"height\":"), found->frame.source_height);
    if (found->model != 0)
        to = json_put_unsigned(json_put(to, ",\"model\":"), found->model);
    return found->late ? json_put(to, ",\"late\":true") : to;
}

size_t result_line(char to[LINE_BYTES_MAX], const struct found *found,
                   const struct line_labels *labels)
{
    char *end = json_put(put_frame(to, found), ",\"objects\":[");
    for (int i = 0; i < found->n; i++) {
        if (i > 0)
            *end++ = ',';
        end = put_object(end, found, i, labels);
    }
    return (size_t)(json_put(end, "]}\n") - to);
}

// --- the lines of an output

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
