// The thread of one camera: connects, passes pictures on from the input through the decoder to the
// transform, and comes back after an outage.
#ifndef FRAMED_DAEMON_CAMERA_CAMERA_THREAD_H
#define FRAMED_DAEMON_CAMERA_CAMERA_THREAD_H

#include "daemon/camera/camera_report.h"
#include "daemon/transform/transform.h"
#include "daemon/view/previews.h"

struct camera_thread;

struct camera_thread_context {
    const struct camera_config *config;
    struct devices *devices;
    struct login_pause *logins; // of all cameras; NULL: wrong passwords are tried like any other
    struct event_queue *events;
    struct subscriptions *subscriptions; // at first; the thread takes a reference of its own
    struct histogram *decode, *process;  // as of struct transform_context
    struct camera_report *report;        // all that the thread says
    struct previews *previews;           // NULL: nobody looks at its pictures
    struct event *ended;                 // posted when the thread ends
};

// --- loop thread
int camera_thread_open(struct camera_thread **ret, const struct camera_thread_context *);
void camera_thread_close(struct camera_thread *); // after camera_thread_join; accepts NULL
int camera_thread_start(struct camera_thread *);  // 0 or negative errno
void camera_thread_stop(struct camera_thread *);  // asks; may be repeated
// From the next picture on these are the outputs; the thread takes a reference of its own, and
// posts the event of the list that it worked by before. Returns a list that it never worked by, to
// be closed, or NULL.
struct subscriptions *camera_thread_subscribe(struct camera_thread *, struct subscriptions *);
// Where its pictures may be looked at; NULL: nowhere.
struct preview_source *camera_thread_preview(const struct camera_thread *);
// The same at once, while the thread is not running: returns the former list, to be closed, or
// NULL.
struct subscriptions *camera_thread_update(struct camera_thread *);
void camera_thread_join(struct camera_thread *); // waits for its end; accepts one never started
// After camera_thread_join: releases the device, and takes back results that lie there. The
// watchdog sees a driver that hangs in it.
void camera_thread_release_device(struct camera_thread *);
// Before camera_thread_start: epochs begin after those of `before`, which has ended.
void camera_thread_continue(struct camera_thread *, const struct camera_thread *before);

// --- camera thread, or a test in its place
// One connection, from connecting to the end of the stream. Returns negative errno, -ENODATA where
// the stream ended well; `why` says in words what ended it. Decoder, buffers and device stay for
// the next connection.
int camera_thread_connect(struct camera_thread *, char *why, size_t size);

#endif
