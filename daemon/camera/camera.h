// A camera, as the loop thread has it: its configuration, the outputs that it delivers to, its
// thread and what that reports. Loop thread only, but for the report.
#ifndef FRAMED_DAEMON_CAMERA_CAMERA_H
#define FRAMED_DAEMON_CAMERA_CAMERA_H

#include "daemon/base/rate_counter.h"
#include "daemon/camera/availability.h"
#include "daemon/camera/camera_report.h"
#include "daemon/camera/camera_thread.h"

struct camera_context {
    struct devices *devices;
    struct login_pause *logins; // as of struct camera_thread_context
    struct event_queue *events;
    struct previews *previews;          // as of struct camera_thread_context
    struct output **batches;            // the list that shares are of (subscriptions_open)
    struct histogram *decode, *process; // as of struct transform_context
    void (*ended)(struct event *);      // the thread has ended (camera_of_event)
    void (*changed)(struct event *);    // changes wait (camera_of_changes); never after `ended`
    // Outputs that the camera had before camera_subscribe may have no subscribers now.
    void (*released)(void *opaque);
    void *opaque; // the caller's, kept in camera.context
};

struct camera {
    struct camera_config *config;
    struct camera_context context;
    struct subscriptions *subscriptions; // the outputs that it delivers to
    struct camera_thread *thread;
    struct camera_report report;
    struct event ended;
    bool started, joined;                               // camera_start, camera_join was called
    struct rate_counter pictures, bytes, spent[STAGES]; // of the report, sampled by the status
    struct availability_share availability;             // kept by the alerts, as is:
    unsigned alerts;                                    // raised now: bit 1 << enum alert_kind
    struct camera *next;                                // the caller's, like:
    bool released;                                      // camera_release_device was called
};

// Opens the camera and its outputs, sinks not included, with a copy of the configuration; no thread
// yet. 0 or negative errno.
int camera_open(struct camera *, const struct camera_config *, const struct camera_context *);
// Before camera_start: its frames are of later epochs than those of `before`, which has ended.
void camera_continue(struct camera *, const struct camera *before);
int camera_start(struct camera *); // 0 or negative errno
// Takes over the list: the camera delivers to these outputs from its next frame on. Outputs that
// only the former list had are the caller's, to be closed once they have no subscribers.
void camera_subscribe(struct camera *, struct subscriptions *);
void camera_stop(struct camera *); // asks; `ended` follows within close_timeout; may be repeated
// After `ended`, or before camera_start: joins the thread. Outputs stay for their sinks to finish.
void camera_join(struct camera *);
// After camera_join, once its sinks are closed, which may read results that lie on its device:
// releases the device with these. Any thread; blocks.
void camera_release_device(struct camera *);
void camera_close(struct camera *); // after camera_join and the sinks' end; accepts a zeroed one

// Where its pictures may be looked at; NULL: nowhere.
struct preview_source *camera_preview(const struct camera *);
// The memory of its stream by its last picture; zeroed before the first.
struct stream_memory camera_memory(const struct camera *);
struct camera *camera_of_changes(struct event *);
struct camera *camera_of_event(struct event *);

#endif
