// What a camera's thread does: one connection after another, from the input through the decoder to
// the pipeline, on the device that works now. Lives as long as the camera; its thread
// calls everything but where a function says so.
#ifndef FRAMED_DAEMON_CAMERA_CAMERA_THREAD_H
#define FRAMED_DAEMON_CAMERA_CAMERA_THREAD_H

#include "daemon/camera/stage_timing.h"
#include "daemon/transform/transform.h"

struct feed;

struct feed_context {
    const struct camera_config *config;
    struct devices *devices;
    struct event_queue *events;
    struct subscriptions *subscriptions; // at first
    uint32_t *epoch;                     // of the next picture, unless that begins another
    struct histogram *decode, *process;
    struct stage_timing *progress;
    const _Atomic bool *stop; // ends every wait
    // What decodes now, and what: at the first picture of a connection, which `first` is, and
    // (`first` NULL) when another decoder carries on.
    void (*shows)(void *opaque, const struct frame *first, const char *decoder, const char *stream);
    // What went wrong while pictures came, in words.
    void (*complains)(void *opaque, const char *what);
    void *opaque;
};

int feed_open(struct feed **ret, const struct feed_context *);
struct watchdog *feed_heartbeat(struct feed *); // of the camera's thread
// One connection, from connecting to the end of the stream: negative errno, -ENODATA where it ended
// well; `why` says in words what ended it. Decoder, buffers and lease stay for the next one.
int feed_run(struct feed *, char *why, size_t size);
// Waits for the frames in flight, and lets go of decoder and buffers.
void feed_drain(struct feed *);
// After feed_drain: releases its device, and slots that lie there. Loop thread
// once the camera's is through.
void feed_leave(struct feed *);
// Loop thread: from the next frame on these are the outputs. Returns a list to close, or NULL.
struct subscriptions *feed_subscribe(struct feed *, struct subscriptions *);
// Goes over to them at once. Camera's thread, or the loop's while the camera's is not running.
// Returns a list to close, or NULL.
struct subscriptions *feed_update_subscriptions(struct feed *);
void feed_wake(struct feed *);  // any thread: lets waits look at *stop again
void feed_close(struct feed *); // loop thread; accepts NULL

#endif
