// A camera: its configuration, its outputs, its thread and the thread's report. Loop thread only,
// unless stated otherwise.
#ifndef FRAMED_DAEMON_CAMERA_CAMERA_H
#define FRAMED_DAEMON_CAMERA_CAMERA_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/counters.h"
#include "daemon/camera/camera_report.h"
#include "daemon/camera/outage.h"
#include "daemon/camera/stream.h"
#include "daemon/codec/stall.h"
#include "daemon/view/previews.h"
#include "daemon/work/work.h"

// --- availability
// The share of the last seven days in which a camera delivered pictures, in buckets of an hour.
// Time when framed did not run, or after the camera ended, is unknown and does not count. Pure.

enum { AVAILABILITY_DAYS = 7, AVAILABILITY_HOURS = 24 * AVAILABILITY_DAYS };

// For one camera; zeroed at first.
struct availability {
    int64_t hour; // of the newest bucket, since 1970
    struct availability_hour {
        uint32_t up_ms, known_ms; // up_ms <= known_ms <= an hour
    } hours[AVAILABILITY_HOURS];  // hour h is at h % AVAILABILITY_HOURS
    int64_t behind_ns;            // how long the wall clock has been behind every bucket
};

struct availability_share {
    int64_t known_s;               // known time of the seven days
    double share;                  // of known_s, 0 to 1; -1: nothing is known
    double day[AVAILABILITY_DAYS]; // per 24 hours, the last ending now; -1 as above
};

// Adds the time since the last call; ignores more than an hour. `realtime_ns` is the wall clock,
// which may be set at any time.
void availability_add(struct availability *, int64_t realtime_ns, int64_t passed_ns, bool up);
void availability_sum(const struct availability *, int64_t realtime_ns,
                      struct availability_share *);
// Returns the bucket of an hour of the last seven days up to `a->hour`; NULL: another hour.
const struct availability_hour *availability_hour(const struct availability *, int64_t hour);
// Sets a bucket; call with the oldest first. Ignores impossible hours and times.
void availability_set(struct availability *, int64_t hour, struct availability_hour);

// --- camera

struct camera_context {
    struct devices *devices;
    struct login_pause *logins; // of all cameras; NULL: wrong passwords are tried every 30 s
    struct event_queue *events;
    struct previews *previews;          // NULL: its pictures have no previews
    struct outlet **batches;            // list with the batches of shares (subscriptions_open)
    struct histogram *decode, *process; // as in struct work_context
    void (*ended)(struct event *);      // camera.ended: the thread has ended
    void (*changed)(struct event *);    // camera.report.changed; never after `ended`
    // Outputs that the camera had before camera_subscribe may have lost their last subscriber.
    void (*released)(void *opaque);
    void *opaque; // the caller's, kept in camera.context
};

struct camera {
    struct camera_config *config;
    struct camera_context context;
    struct camera_report report;
    // Loop thread:
    struct subscriptions *subscriptions; // its outputs
    struct preview_source preview;
    struct event ended;
    bool started, joined, released; // camera_start, camera_join, camera_released was called
    struct rate_counter pictures, bytes, spent[STAGES]; // from the report, sampled by the status
    struct availability_share availability;             // updated by the alerts, like:
    unsigned alerts;                                    // raised now: bit 1 << enum alert_kind
    struct camera *next;                                // for the caller
    // From the loop thread to the camera's:
    pthread_t thread;
    pthread_mutex_t lock; // guards the wait for the next try
    pthread_cond_t wake;
    _Atomic bool stop;
    _Atomic(struct subscriptions *) given; // NULL: no change
    // The camera's thread; the loop's before its start and after its end:
    struct subscriptions *outputs;
    struct demux_memory memory;
    struct demux *demux;     // NULL: not connected
    struct decoder *decoder; // kept across connections; NULL: none
    struct scene *scene;
    struct camera_work *work;
    struct device_lease lease;
    bool cut_short_logged;
    struct stream stream;
    struct decode_stall stall;
    struct outage outage;
};

// Opens the camera and its outputs, without sinks, with a copy of the configuration; starts no
// thread. The camera must not move in memory. Returns 0 or a negative errno.
int camera_open(struct camera *, const struct camera_config *, const struct camera_context *);
// Takes over the list: the camera delivers to these outputs from its next frame on. The caller
// closes outputs that only the former list had, once they have no subscribers.
void camera_subscribe(struct camera *, struct subscriptions *);
// Call after camera_join, once the device is released: ends its previews' outputs, and switches
// to those of a camera_subscribe since then.
void camera_released(struct camera *);
void camera_close(struct camera *); // after camera_join and the sinks' end; accepts a zeroed one

// --- its thread (camera_thread.c): connects, passes pictures from the input through the decoder to
// the outputs, and reconnects after an outage

int camera_start(struct camera *); // 0 or negative errno
// Call before camera_start: continues after the epochs of `before`, which has ended.
void camera_continue(struct camera *, const struct camera *before);
void camera_stop(struct camera *); // `ended` follows within close_timeout; may be repeated
void camera_wake(struct camera *); // call after a change of `given`
// Joins the thread, after `ended` or before camera_start. Outputs stay for their sinks to finish.
void camera_join(struct camera *);
// Closes the decoder, releases the device, and takes back results on it. Camera thread; or any,
// after camera_join and once the camera's sinks, which may read these results, are closed. Blocks.
// The watchdog notices a driver that hangs here.
void camera_release_device(struct camera *);

// Camera thread, or another one while it does not run. Switches to the outputs in `given`. Returns
// the former list, with its reference; NULL: there was no change.
struct subscriptions *camera_switch(struct camera *);
// Camera thread, or a test in its place. Follows the loop thread's orders: the stop, other outputs,
// another device. The connection and the decoder survive all changes. Returns 0; -ECANCELED: the
// camera is stopped; or another negative errno.
int camera_take_orders(struct camera *);
// Camera thread, or a test in its place. Runs one connection, from connecting to the end of the
// stream. Returns a negative errno, -ENODATA if the stream ended well; `why` gets the reason in
// words. Decoder, buffers and device stay for the next connection.
int camera_connect(struct camera *, char *why, size_t size);

#endif
