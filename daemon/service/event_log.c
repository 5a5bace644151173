#include "daemon/service/event_log.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/camera/camera_report.h"
#include "daemon/service/status.h"

struct logged {
    uint64_t id;
    enum event_kind kind;
    char camera[24]; // "": no camera
    char *data;      // JSON without a newline
    size_t bytes;
};

// Events are counted from the log's opening; `begin` to `end` are kept.
struct shelf {
    struct logged *list; // event n is at n % room
    unsigned room;
    uint64_t begin, end;
    uint64_t removed_id; // of the newest dropped event
    size_t bytes;
};

enum { SHELF_RARE, SHELF_LINES, SHELVES }; // lines do not push out rare events

struct event_log {
    struct shelf shelf[SHELVES];
    uint64_t next_id;
    struct event_reader *readers;
};

struct event_reader {
    struct event_log *log;
    struct event_filter filter;
    void (*woken)(void *opaque);
    void *opaque;
    bool waits;            // the last fill returned nothing
    uint64_t at[SHELVES];  // the next event of each shelf
    uint64_t due[SHELVES]; // events from there on for the reader, kept or not
    bool lost_some;        // it lost an unknown number
    char *text;            // of the event under way; text_at bytes of it were copied
    size_t text_at, text_end;
    struct event_reader *next;
};

static const char *event_kind_name(enum event_kind kind)
{
    static const char *const names[EVENT_KINDS] = {
        [EVENT_STATE] = "state",   [EVENT_ALARM] = "alarm",           [EVENT_RELOAD] = "reload",
        [EVENT_CHANGE] = "change", [EVENT_DETECTIONS] = "detections",
    };
    return names[kind];
}

int event_log_open(struct event_log **ret)
{
    static const unsigned room[SHELVES] = {EVENTS_KEPT, EVENT_LINES_KEPT};
    struct event_log *log = calloc(1, sizeof *log);
    bool ok = log;
    for (int i = 0; ok && i < SHELVES; i++) {
        log->shelf[i].room = room[i];
        log->shelf[i].list = calloc(room[i], sizeof(struct logged));
        ok = log->shelf[i].list;
    }
    if (!ok) {
        event_log_close(log);
        return -ENOMEM;
    }
    log->next_id = (uint64_t)realtime_ns() / 1000;
    *ret = log;
    return 0;
}

static void remove_oldest(struct shelf *shelf)
{
    struct logged *oldest = &shelf->list[shelf->begin++ % shelf->room];
    shelf->removed_id = oldest->id;
    shelf->bytes -= oldest->bytes;
    free(oldest->data);
}

static void clear_shelf(struct shelf *shelf)
{
    while (shelf->begin < shelf->end)
        remove_oldest(shelf);
}

void event_log_close(struct event_log *log)
{
    if (!log)
        return;
    for (int i = 0; i < SHELVES; i++) {
        clear_shelf(&log->shelf[i]);
        free(log->shelf[i].list);
    }
    free(log);
}

// --- events

static bool wants_event(const struct event_filter *filter, const struct logged *event)
{
    return filter->kinds >> event->kind & 1 &&
           (!filter->camera[0] || strcmp(filter->camera, event->camera) == 0);
}

// Takes ownership of the data; NULL: out of memory.
static void add_event(struct event_log *log, enum event_kind kind, const char *camera, char *data)
{
    const int at = kind == EVENT_DETECTIONS ? SHELF_LINES : SHELF_RARE;
    struct shelf *shelf = &log->shelf[at];
    if (!data)
        return;
    const size_t bytes = strlen(data);
    while (shelf->begin < shelf->end &&
           (shelf->end - shelf->begin == shelf->room ||
            (at == SHELF_LINES && shelf->bytes + bytes > EVENT_LINES_BYTES)))
        remove_oldest(shelf);
    struct logged *event = &shelf->list[shelf->end++ % shelf->room];
    *event = (struct logged){.id = log->next_id++, .kind = kind, .data = data, .bytes = bytes};
    snprintf(event->camera, sizeof event->camera, "%s", camera);
    shelf->bytes += bytes;
    for (struct event_reader *reader = log->readers, *next; reader; reader = next) {
        next = reader->next;
        if (!wants_event(&reader->filter, event))
            continue;
        reader->due[at]++;
        if (reader->waits) {
            reader->waits = false;
            reader->woken(reader->opaque);
        }
    }
}

// Frees `json`.
static char *text_of(json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(13));
    json_decref(json);
    return text;
}

static double seconds(int64_t ns)
{
    return (double)(ns / 1000000) / 1000;
}

void event_log_change(struct event_log *log, const char *camera, const struct camera_change *change)
{
    json_t *json = json_pack("{s:f, s:s}", "t", seconds(change->realtime_ns), "camera", camera);
    if (change->is_alarm) {
        json_object_set_new(json, "alarm", json_string(alarm_name(change->alarm)));
        json_object_set_new(json, "raised", json_boolean(change->raised));
        add_event(log, EVENT_ALARM, camera, text_of(json));
        return;
    }
    json_object_set_new(json, "state", json_string(camera_state_name((int)change->state)));
    json_object_set_new(json, "why", change->why[0] ? status_string(change->why) : json_null());
    if (change->outage_ns > 0)
        json_object_set_new(json, "outage_s", json_real(seconds(change->outage_ns)));
    add_event(log, EVENT_STATE, camera, text_of(json));
}

void event_log_reload(struct event_log *log, int64_t realtime_ns, bool ok, const char *text)
{
    add_event(log, EVENT_RELOAD, "",
              text_of(json_pack("{s:f, s:b, s:o}", "t", seconds(realtime_ns), "ok", ok, "text",
                                status_string(text))));
}

void event_log_edit(struct event_log *log, int64_t realtime_ns, const struct edit *edit)
{
    add_event(log, EVENT_CHANGE, edit->camera,
              text_of(json_pack("{s:f, s:s, s:s}", "t", seconds(realtime_ns), "camera",
                                edit->camera, "change", edit_done_text(edit))));
}

void event_log_line(struct event_log *log, const char *line, size_t bytes)
{
    static const char before[] = "{\"camera\":\"";
    const size_t at = sizeof before - 1;
    char camera[24] = "";
    if (bytes > at && strncmp(line, before, at) == 0)
        snprintf(camera, sizeof camera, "%.*s", (int)strcspn(line + at, "\""), line + at);
    add_event(log, EVENT_DETECTIONS, camera, strndup(line, bytes - 1));
}

bool event_log_wants_lines(const struct event_log *log)
{
    const struct event_reader *reader = log->readers;
    while (reader && !(reader->filter.kinds >> EVENT_DETECTIONS & 1))
        reader = reader->next;
    return reader != NULL;
}

// --- readers

static uint64_t count_wanted(const struct event_reader *reader, const struct shelf *shelf,
                             uint64_t from)
{
    uint64_t n = 0;
    for (uint64_t i = from; i < shelf->end; i++)
        n += wants_event(&reader->filter, &shelf->list[i % shelf->room]);
    return n;
}

// Finds a new reader's begin: after the event in its filter, or before the last rare events.
static void find_begin(struct event_reader *reader, int which)
{
    const struct shelf *shelf = &reader->log->shelf[which];
    const struct event_filter *filter = &reader->filter;
    const uint64_t most = which == SHELF_RARE ? EVENTS_AT_FIRST : 0;
    uint64_t at = shelf->end, n = 0;
    while (at > shelf->begin) {
        const struct logged *event = &shelf->list[(at - 1) % shelf->room];
        if (filter->continues ? event->id <= filter->after : n == most)
            break;
        n += wants_event(filter, event);
        at--;
    }
    reader->at[which] = at;
    reader->due[which] = n;
    if (filter->continues && filter->after < shelf->removed_id &&
        (which == SHELF_RARE || filter->kinds >> EVENT_DETECTIONS & 1))
        reader->lost_some = true;
}

int event_reader_open(struct event_reader **ret, struct event_log *log,
                      const struct event_filter *filter, void (*woken)(void *opaque), void *opaque)
{
    struct event_reader *reader = malloc(sizeof *reader);
    if (!reader)
        return -ENOMEM;
    *reader = (struct event_reader){
        .log = log,
        .filter = *filter,
        .woken = woken,
        .opaque = opaque,
        .next = log->readers,
    };
    for (int i = 0; i < SHELVES; i++)
        find_begin(reader, i);
    log->readers = reader;
    *ret = reader;
    return 0;
}

// Moves to the shelf's next event for the reader. Returns how many it lost on the way.
static uint64_t skip(struct event_reader *reader, int which)
{
    const struct shelf *shelf = &reader->log->shelf[which];
    uint64_t lost = 0;
    if (reader->at[which] < shelf->begin) {
        const uint64_t kept = count_wanted(reader, shelf, shelf->begin);
        lost = reader->due[which] - kept;
        reader->due[which] = kept;
        reader->at[which] = shelf->begin;
    }
    while (reader->at[which] < shelf->end &&
           !wants_event(&reader->filter, &shelf->list[reader->at[which] % shelf->room]))
        reader->at[which]++;
    return lost;
}

static const struct logged *next_event(struct event_reader *reader)
{
    const struct logged *next = NULL;
    int from = 0;
    for (int i = 0; i < SHELVES; i++) {
        const struct shelf *shelf = &reader->log->shelf[i];
        const struct logged *event = &shelf->list[reader->at[i] % shelf->room];
        if (reader->at[i] == shelf->end || (next && next->id < event->id))
            continue;
        next = event;
        from = i;
    }
    if (next) {
        reader->at[from]++;
        reader->due[from]--;
    }
    return next;
}

// Writes the next event to reader->text. False: there is none.
static bool prepare_text(struct event_reader *reader)
{
    uint64_t lost = 0;
    int n = 0;
    free(reader->text);
    reader->text = NULL;
    reader->text_at = reader->text_end = 0;
    for (int i = 0; i < SHELVES; i++)
        lost += skip(reader, i);
    if (reader->lost_some) {
        n = asprintf(&reader->text, "event: lost\ndata: {\"lost\":null}\n\n");
    } else if (lost > 0) {
        n = asprintf(&reader->text, "event: lost\ndata: {\"lost\":%llu}\n\n",
                     (unsigned long long)lost);
    } else {
        const struct logged *event = next_event(reader);
        if (!event)
            return false;
        n = asprintf(&reader->text, "id: %llu\nevent: %s\ndata: %s\n\n",
                     (unsigned long long)event->id, event_kind_name(event->kind), event->data);
    }
    reader->lost_some = n < 0; // out of memory
    if (n < 0)
        reader->text = NULL;
    reader->text_end = n < 0 ? 0 : (size_t)n;
    return n >= 0;
}

size_t event_reader_fill(struct event_reader *reader, char *to, size_t room)
{
    size_t used = 0;
    while (used < room && (reader->text_at < reader->text_end || prepare_text(reader))) {
        const size_t left = reader->text_end - reader->text_at;
        const size_t n = left < room - used ? left : room - used;
        memcpy(to + used, reader->text + reader->text_at, n);
        reader->text_at += n;
        used += n;
    }
    reader->waits = used == 0;
    return used;
}

static void touch_reader(struct event_reader *reader)
{
    static const char comment[] = ":\n\n";
    free(reader->text);
    reader->text = strdup(comment);
    reader->text_at = 0;
    reader->text_end = reader->text ? strlen(comment) : 0;
    reader->waits = false;
    reader->woken(reader->opaque);
}

void event_log_touch(struct event_log *log)
{
    for (struct event_reader *reader = log->readers, *next; reader; reader = next) {
        next = reader->next;
        if (reader->waits)
            touch_reader(reader);
    }
}

void event_reader_close(struct event_reader *reader)
{
    if (!reader)
        return;
    struct event_log *log = reader->log;
    struct event_reader **at = &log->readers;
    while (*at != reader)
        at = &(*at)->next;
    *at = reader->next;
    free(reader->text);
    free(reader);
    if (!event_log_wants_lines(log))
        clear_shelf(&log->shelf[SHELF_LINES]);
}

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

// --- streams: lines of detections

static void leave_lines(void *opaque, struct outlet *outlet)
{
    (void)opaque;
    if (outlet->lines)
        outlet->lines->is_followed = false;
}

// The queue belongs to the lines' own readers. It drops the oldest lines if they come faster than
// they are read; so does the log.
static void log_lines(void *opaque, struct outlet *outlet)
{
    const struct event_streams *streams = opaque;
    struct result_lines *lines = outlet->lines;
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

// --- a client of a stream

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

static size_t fill_stream(void *opaque, char *to, size_t room)
{
    const struct event_stream *stream = opaque;
    return event_reader_fill(stream->reader, to, room);
}

static void wake_stream(void *opaque)
{
    const struct event_stream *stream = opaque;
    http_wake(stream->exchange);
}

static void close_stream(void *opaque)
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
        .type = "text/event-stream", .fill = fill_stream, .gone = close_stream, .opaque = stream};
    int rc = stream ? 0 : -ENOMEM;
    if (rc == 0) {
        stream->exchange = exchange;
        rc = event_reader_open(&stream->reader, streams->context.log, &filter, wake_stream, stream);
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
        close_stream(stream);
}

// --- life of the streams

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
