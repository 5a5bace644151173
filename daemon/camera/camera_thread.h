// The thread of one camera: connects, passes pictures from the input through the decoder to the
// outputs, and reconnects after an outage.
#ifndef FRAMED_DAEMON_CAMERA_CAMERA_THREAD_H
#define FRAMED_DAEMON_CAMERA_CAMERA_THREAD_H

#include "daemon/camera/camera_report.h"
#include "daemon/work/work.h"

struct camera_thread;

struct camera_thread_context {
    const struct camera_config *config;
    struct devices *devices;
    struct login_pause *logins; // of all cameras; NULL: wrong passwords are tried every 30 s
    struct event_queue *events;
    struct subscriptions *subscriptions; // initial; the thread takes its own reference
    struct histogram *decode, *process;  // as in struct work_context
    struct camera_report *report;        // everything that the thread reports
    struct event *ended;                 // posted when the thread ends
};

// --- loop thread
int camera_thread_open(struct camera_thread **ret, const struct camera_thread_context *);
void camera_thread_close(struct camera_thread *); // after camera_thread_join; accepts NULL
int camera_thread_start(struct camera_thread *);  // 0 or negative errno
void camera_thread_stop(struct camera_thread *);  // returns at once; may be repeated
// Sets the outputs from the next picture on. The thread takes its own reference, and posts the
// event of the list that it used before. Returns a list that it never used, to be closed, or NULL.
struct subscriptions *camera_thread_subscribe(struct camera_thread *, struct subscriptions *);
// Does the same at once, while the thread is not running. Returns the former list, to be closed, or
// NULL.
struct subscriptions *camera_thread_update(struct camera_thread *);
void camera_thread_join(struct camera_thread *); // waits for its end; accepts one never started
// Releases the device, and takes back results on it. Call after camera_thread_join and once the
// camera's sinks, which may read these results, are closed. Any thread; blocks. The watchdog
// notices a driver that hangs here.
void camera_thread_release_device(struct camera_thread *);
// Call before camera_thread_start: continues after the epochs of `before`, which has ended.
void camera_thread_continue(struct camera_thread *, const struct camera_thread *before);

// --- camera thread, or a test in its place
// Runs one connection, from connecting to the end of the stream. Returns a negative errno, -ENODATA
// if the stream ended well; `why` gets the reason in words. Decoder, buffers and device stay for
// the next connection.
int camera_thread_connect(struct camera_thread *, char *why, size_t size);

#endif
