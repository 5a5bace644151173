// GET /api/v1/events: the event log as server-sent events. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_EVENT_STREAM_H
#define FRAMED_DAEMON_SERVICE_EVENT_STREAM_H

#include "daemon/service/event_log.h"
#include "daemon/service/http.h"
#include "daemon/service/metrics.h"

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
