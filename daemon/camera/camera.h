// One input with its thread: connects, decodes, submits, and comes back after an outage. Opened,
// started, stopped and closed on the loop thread.
#ifndef FRAMED_DAEMON_CAMERA_CAMERA_H
#define FRAMED_DAEMON_CAMERA_CAMERA_H

#include "config/config.h"
#include "daemon/base/event_queue.h"
#include "daemon/base/histogram.h"
#include "daemon/base/last_error.h"
#include "daemon/camera/stage_timing.h"
#include "daemon/device/devices.h"
#include "daemon/output/subscriptions.h"

enum camera_state {
    CAMERA_CONNECTING,
    CAMERA_RUNNING,
    CAMERA_RETRYING,
    CAMERA_ENDED,  // its file is through, or it was stopped
    CAMERA_FAILED, // its file cannot be read: trying again would not help
};

struct camera_context {
    struct devices *devices;
    struct event_queue *events;
    struct histogram *decode, *process;
    void (*ended)(struct event *); // loop thread: the thread is through (camera_of_event)
    // Loop thread: outputs that the camera had before camera_subscribe may have no subscribers now.
    void (*released)(void *opaque);
    void *opaque; // the caller's, kept in camera.context
};

struct camera {
    struct camera_config *config;
    struct camera_context context;
    struct subscriptions *subscriptions; // loop thread: what the camera delivers to
    struct event letter;                 // "the thread is through"
    bool started, through;               // loop thread: camera_start, camera_join was called
    _Atomic int state;                   // enum camera_state
    _Atomic uint64_t reconnects;
    _Atomic int64_t next_try_ns; // CLOCK_MONOTONIC; of CAMERA_RETRYING
    struct stage_timing progress;
    struct rate_counter pictures,
        spent[CAMERA_STAGES];     // loop thread: of progress, sampled by the status
    uint32_t epoch;               // its thread's while that runs: of the last picture
    struct camera *next;          // the caller's, of one that is on its way out
    struct camera_thread *thread; // private to camera.c
};

// Opens the camera and its outputs, sinks not included, with a copy of the configuration; no thread
// yet.
int camera_open(struct camera *, const struct camera_config *, const struct camera_context *);
int camera_start(struct camera *);
// Takes over the list: the camera delivers to these outputs from its next frame on. Outputs that
// only the former list had are the caller's, to be closed once they have no subscribers.
void camera_subscribe(struct camera *, struct subscriptions *);
// Before camera_start: its frames are of a later epoch than those of `before`, which has ended.
void camera_follow(struct camera *, const struct camera *before);
void camera_stop(struct camera *); // asks; `ended` follows within close_timeout; may be repeated
// After `ended`, or before camera_start: joins the thread. Outputs stay for their sinks to finish.
void camera_join(struct camera *);
// After camera_join: slots that lie on a device, which sinks may be at until now, go.
void camera_leave(struct camera *);
void camera_close(struct camera *); // after camera_join and the sinks' end; accepts a zeroed one

// What memory its stream takes by its last picture, or else by its configuration.
struct stream_memory camera_memory(const struct camera *);

struct camera *camera_of_event(struct event *);
const char *camera_state_name(int state);

enum { CAMERA_TEXT_MAX = 160 };
struct camera_description {
    // "cpu h264", and what the stream is; empty before the first picture.
    char decoder[CAMERA_TEXT_MAX], stream[CAMERA_TEXT_MAX];
    struct last_error complaint;
};
void camera_describe(struct camera *, struct camera_description *ret);
// What its thread is at, where it has been at it for more than `patience_ns` longer than the
// camera's deadlines allow; else NULL.
const char *camera_stuck(const struct camera *, int64_t patience_ns);

#endif
