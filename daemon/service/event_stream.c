#include "daemon/service/event_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MS = 100 }; // between reads of new lines, while a client follows them

struct event_streams {
    struct event_streams_context context;
    uv_timer_t timer; // active while a client follows lines
};

// One client.
struct event_stream {
    struct http_exchange *exchange;
    struct event_reader *reader;
};

// --- lines of detections

static void leave_lines(void *opaque, struct output *output)
{
    (void)opaque;
    if (output->lines)
        output->lines->is_followed = false;
}

// The queue belongs to the lines' own readers. It drops the oldest lines if they come faster than
// they are read; so does the log.
static void log_lines(void *opaque, struct output *output)
{
    const struct event_streams *streams = opaque;
    struct result_lines *lines = output->lines;
    const struct line *line;
    if (!lines)
        return;
    if (!lines->is_followed)
        lines->followed = lines->queue->next;
    lines->is_followed = true;
    line_queue_skip(lines->queue, &lines->followed);
    for (; (line = line_queue_get(lines->queue, lines->followed)); lines->followed++)
        event_log_line(streams->context.log, line->text, line->bytes);
}

static void look_for_lines(uv_timer_t *timer)
{
    struct event_streams *streams = timer->data;
    const bool wanted = event_log_wants_lines(streams->context.log);
    struct metrics metrics;
    streams->context.snapshot(streams->context.opaque, &metrics);
    metrics_each_results(&metrics, wanted ? log_lines : leave_lines, streams);
    if (!wanted)
        uv_timer_stop(timer);
}

static void follow_lines(struct event_streams *streams)
{
    if (!event_log_wants_lines(streams->context.log) ||
        uv_is_active((uv_handle_t *)&streams->timer))
        return;
    look_for_lines(&streams->timer);
    uv_timer_start(&streams->timer, look_for_lines, LINES_MS, LINES_MS);
}

// --- a client

// Returns the kinds in a list like "state,alarm"; 0: one is unknown.
static unsigned kinds_of(const char *list)
{
    unsigned kinds = 0;
    for (size_t n; *list; list += n + (list[n] == ',')) {
        int kind = 0;
        n = strcspn(list, ",");
        while (kind < EVENT_KINDS &&
               (strlen(event_kind_name((enum event_kind)kind)) != n ||
                strncmp(event_kind_name((enum event_kind)kind), list, n) != 0))
            kind++;
        if (kind == EVENT_KINDS)
            return 0;
        kinds |= 1u << kind;
    }
    return kinds;
}

// False: the request was refused.
static bool read_filter(struct http_exchange *exchange, struct event_filter *ret)
{
    const char *types = http_argument(exchange, "types");
    const char *camera = http_argument(exchange, "camera");
    const char *after = http_argument(exchange, "after");
    char *end;
    *ret = (struct event_filter){.kinds = EVENTS_ALL & ~(1u << EVENT_DETECTIONS)};
    if (types && !(ret->kinds = kinds_of(types))) {
        http_refuse(exchange, 400,
                    "types is a list of state, alarm, reload, change and detections");
        return false;
    }
    if (camera && (!*camera || strlen(camera) >= sizeof ret->camera)) {
        http_refuse(exchange, 400, "camera is a name of 1 to %zu bytes", sizeof ret->camera - 1);
        return false;
    }
    if (camera)
        strcpy(ret->camera, camera);
    if (!after)
        after = http_header(exchange, "Last-Event-ID");
    if (!after)
        return true;
    ret->continues = true;
    ret->after = strtoull(after, &end, 10);
    if (*end || *after < '0' || *after > '9') {
        http_refuse(exchange, 400, "after is the id of an event");
        return false;
    }
    return true;
}

static size_t fill(void *opaque, char *to, size_t room)
{
    const struct event_stream *stream = opaque;
    return event_reader_fill(stream->reader, to, room);
}

static void woken(void *opaque)
{
    const struct event_stream *stream = opaque;
    http_wake(stream->exchange);
}

static void gone(void *opaque)
{
    struct event_stream *stream = opaque;
    event_reader_close(stream->reader);
    free(stream);
}

void event_streams_serve(struct event_streams *streams, struct http_exchange *exchange)
{
    struct event_filter filter;
    if (!read_filter(exchange, &filter))
        return;
    struct event_stream *stream = calloc(1, sizeof *stream);
    const struct http_stream response = {
        .type = "text/event-stream", .fill = fill, .gone = gone, .opaque = stream};
    int rc = stream ? 0 : -ENOMEM;
    if (rc == 0) {
        stream->exchange = exchange;
        rc = event_reader_open(&stream->reader, streams->context.log, &filter, woken, stream);
    }
    if (rc == 0)
        rc = http_stream(exchange, &response);
    if (rc == 0) {
        follow_lines(streams);
        return;
    }
    http_refuse(exchange, 503,
                rc == -EBUSY ? "too many clients that follow something" : "no memory");
    if (stream)
        gone(stream);
}

// --- life

int event_streams_open(struct event_streams **ret, const struct event_streams_context *context)
{
    struct event_streams *streams = calloc(1, sizeof *streams);
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

void event_streams_close(struct event_streams *streams)
{
    if (streams)
        uv_close((uv_handle_t *)&streams->timer, free_streams);
}
