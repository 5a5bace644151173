// A camera as the loop thread sees it: its configuration, its outputs, its thread and the thread's
// report. Loop thread only, except for the report.
#ifndef FRAMED_DAEMON_CAMERA_CAMERA_H
#define FRAMED_DAEMON_CAMERA_CAMERA_H

#include "daemon/base/counters.h"
#include "daemon/camera/availability.h"
#include "daemon/camera/camera_report.h"
#include "daemon/camera/camera_thread.h"

struct camera_context {
    struct devices *devices;
    struct login_pause *logins; // as in struct camera_thread_context
    struct event_queue *events;
    struct previews *previews;          // as in struct camera_thread_context
    struct output **batches;            // list with the batches of shares (subscriptions_open)
    struct histogram *decode, *process; // as in struct transform_context
    void (*ended)(struct event *);      // the thread has ended (camera_of_event)
    void (*changed)(struct event *);    // changes wait (camera_of_changes); never after `ended`
    // Outputs that the camera had before camera_subscribe may have lost their last subscriber.
    void (*released)(void *opaque);
    void *opaque; // the caller's, kept in camera.context
};

struct camera {
    struct camera_config *config;
    struct camera_context context;
    struct subscriptions *subscriptions; // its outputs
    struct camera_thread *thread;
    struct camera_report report;
    struct event ended;
    bool started, joined;                               // camera_start, camera_join was called
    struct rate_counter pictures, bytes, spent[STAGES]; // from the report, sampled by the status
    struct availability_share availability;             // updated by the alerts, like:
    unsigned alerts;                                    // raised now: bit 1 << enum alert_kind
    struct camera *next;                                // for the caller, like:
    bool released;                                      // camera_release_device was called
};

// Opens the camera and its outputs, without sinks, with a copy of the configuration; starts no
// thread. Returns 0 or a negative errno.
int camera_open(struct camera *, const struct camera_config *, const struct camera_context *);
// Call before camera_start: continues after the epochs of `before`, which has ended.
void camera_continue(struct camera *, const struct camera *before);
int camera_start(struct camera *); // 0 or negative errno
// Takes over the list: the camera delivers to these outputs from its next frame on. The caller
// closes outputs that only the former list had, once they have no subscribers.
void camera_subscribe(struct camera *, struct subscriptions *);
void camera_stop(struct camera *); // `ended` follows within close_timeout; may be repeated
// Joins the thread, after `ended` or before camera_start. Outputs stay for their sinks to finish.
void camera_join(struct camera *);
// Releases the device with the results on it. Call after camera_join and once the camera's sinks,
// which may read these results, are closed. Any thread; blocks.
void camera_release_device(struct camera *);
void camera_close(struct camera *); // after camera_join and the sinks' end; accepts a zeroed one

// Returns the source of its previews; NULL: it has none.
struct preview_source *camera_preview(const struct camera *);
// Returns the memory of its stream as of the last picture; zeroed before the first.
struct stream_memory camera_memory(const struct camera *);
struct camera *camera_of_changes(struct event *);
struct camera *camera_of_event(struct event *);

#endif
