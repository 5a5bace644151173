// The last events of the daemon, for programs that follow them: states of cameras, alarms of their
// scenes, reloads, requested changes of one camera, and, while a reader follows them, the lines of
// outputs' `detections`. The ids of events rise, also from one run of the daemon to the next.
// Memory is bounded: a reader that is slower than the events loses the oldest and gets their
// number. Loop thread.
//
// A reader gets server-sent events with data in JSON:
//
//     id: 1760000000123456
//     event: state
//     data: {"t":1760000000.125,"camera":"gate","state":"retrying","why":"connection refused"}
//
//     state       t, camera, state ("running", "retrying", "ended", "failed"), why (or null),
//                 outage_s if the camera runs again
//     alarm       t, camera, alarm, raised (or cleared)
//     reload      t, ok, text
//     change      t, camera, change ("put", "removed", "paused", "resumed")
//     detections  the line (output/lines.h)
//     lost        lost: number of the reader's events missing here; null: unknown
#ifndef FRAMED_DAEMON_SERVICE_EVENT_LOG_H
#define FRAMED_DAEMON_SERVICE_EVENT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/camera/camera_report.h"
#include "daemon/service/http.h"
#include "daemon/service/metrics.h"
#include "daemon/supervisor/edit.h"

enum event_kind {
    EVENT_STATE,
    EVENT_ALARM,
    EVENT_RELOAD,
    EVENT_CHANGE,
    EVENT_DETECTIONS,
    EVENT_KINDS
};
#define EVENTS_ALL ((1 << EVENT_KINDS) - 1) // a bit 1 << kind for each

enum {
    EVENTS_KEPT = 512,           // all but lines
    EVENT_LINES_KEPT = 2048,     // of detections...
    EVENT_LINES_BYTES = 1 << 20, // ...and no more bytes than these
    EVENTS_AT_FIRST = 50,        // past events for a new reader
};

struct event_log;

struct event_filter {
    unsigned kinds;  // a bit 1 << enum event_kind for each
    char camera[24]; // "": all
    bool continues;  // after the event with this id; else with the last EVENTS_AT_FIRST
    uint64_t after;
};

struct event_reader;

int event_log_open(struct event_log **ret); // 0 or -ENOMEM
void event_log_close(struct event_log *);   // no reader may be left; accepts NULL

// --- events; not kept if memory is short
void event_log_change(struct event_log *, const char *camera, const struct camera_change *);
void event_log_reload(struct event_log *, int64_t realtime_ns, bool ok, const char *text);
void event_log_edit(struct event_log *, int64_t realtime_ns, const struct edit *); // once made
// A JSON line as in output/lines.h, which begins with its camera, with its newline.
void event_log_line(struct event_log *, const char *line, size_t bytes);
bool event_log_wants_lines(const struct event_log *); // else nobody reads lines
// Sends each reader without data a comment, which clients skip: a connection that is silent for
// long looks dead.
void event_log_touch(struct event_log *);

// --- readers
// Calls `woken` when there is more for a reader that got nothing; `woken` may call
// event_reader_fill. Returns 0 or -ENOMEM.
int event_reader_open(struct event_reader **ret, struct event_log *, const struct event_filter *,
                      void (*woken)(void *opaque), void *opaque);
// Copies at most `room` bytes of the reader's next data; 0: nothing for now.
size_t event_reader_fill(struct event_reader *, char *to, size_t room);
void event_reader_close(struct event_reader *); // accepts NULL

// --- GET /api/v1/events: the log as server-sent events

struct event_streams;

struct event_streams_context {
    uv_loop_t *loop;
    struct event_log *log; // outlives the streams
    void (*snapshot)(void *opaque, struct metrics *ret);
    void *opaque;
};

int event_streams_open(struct event_streams **ret, const struct event_streams_context *);
// The loop's next iterations close its handles. No exchange may be left. Accepts NULL.
void event_streams_close(struct event_streams *);
// Serves a client of events: ?camera=NAME, ?types=state,alarm, ?after=ID or Last-Event-ID.
void event_streams_serve(struct event_streams *, struct http_exchange *);

#endif
