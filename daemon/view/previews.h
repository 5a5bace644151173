// JPEGs of cameras' pictures, and of their outputs' results, for viewers.
//
// A preview is a repeated JPEG of one kind of one camera. It exists while it has askers, and all
// who ask for the same kind share it. One thread makes the JPEGs of all pictures on the host, at
// lower priority than any other thread. Another makes JPEGs of pictures on GPUs, at normal
// priority: it takes the driver's locks, and outputs would wait for it if it could not run. A
// camera's thread leaves them the picture that is due, in place of one that they have not started,
// and leaves none while they have one of that camera. So at most one picture of a camera is held,
// no output waits for a preview, and if the threads cannot keep up, previews are newer and fewer. A
// picture is read where it is, on the device by a separate plan, and released before it is encoded.
//
// Nothing is decoded only for a preview.
//
// One lock guards the data that the threads share. It is taken after no other lock, and before the
// lock of a camera's pictures; it is not held while a picture is read or encoded.
#ifndef FRAMED_DAEMON_VIEW_PREVIEWS_H
#define FRAMED_DAEMON_VIEW_PREVIEWS_H

#include "daemon/base/loop.h"
#include "daemon/codec/frame.h"
#include "daemon/device/devices.h"
#include "daemon/output/subscriptions.h"

enum {
    PREVIEW_WIDTH_MIN = 64, // of a camera's picture, pixels
    PREVIEW_WIDTH_MAX = 1920,
    PREVIEW_KINDS_MAX = 32, // of one camera at once
    PREVIEW_FACTS_MAX = 1024,
    PREVIEW_WHY_MAX = 256,
    PREVIEW_NAME_MAX = 31, // bytes of an output's name
};
#define PREVIEW_FPS_MIN 0.2
#define PREVIEW_FPS_MAX 30.0

struct previews;
struct preview;
struct preview_source; // of one camera

// A JPEG with its facts, or the reason for having none.
struct preview_picture {
    int references;                // loop thread
    char facts[PREVIEW_FACTS_MAX]; // a JSON object
    char why[PREVIEW_WHY_MAX];     // why there is no JPEG; else ""
    int64_t capture_ns, pts_ns;    // as in struct frame_info
    uint64_t sequence;             // of the output, or a count of the camera's pictures
    uint32_t epoch, flags;         // as in struct frame_info
    size_t size;                   // of the JPEG
    uint8_t file[];
};

struct preview_picture *preview_picture_ref(struct preview_picture *); // returns its argument
void preview_picture_unref(struct preview_picture *);                  // accepts NULL
// Makes a picture without a JPEG, with the reason; `output` may be "". NULL: out of memory.
struct preview_picture *preview_picture_refuse(const char *camera, const char *output,
                                               const char *why);

struct preview_wish {
    char output[PREVIEW_NAME_MAX + 1]; // show its results, in their size; "": the camera's pictures
    int plane;                         // of an output: the only channel shown, from 0; below 0: all
    int width;                         // of a camera's picture: PREVIEW_WIDTH_MIN to _MAX
    double fps;                        // most pictures a second; 0: one picture, at best quality
};

// One asker. The caller keeps it from preview_ask to preview_leave, or until `take` ends it.
struct preview_asker {
    struct preview_wish wish;
    int64_t patience_ns; // time without a picture until it gets a refusal; 0: no limit
    // Loop thread. The picture is valid during the call, or longer with a reference. May leave. The
    // asker ends with its first call if wish.fps is 0, and with a call where `preview` is NULL: the
    // camera is gone.
    void (*take)(struct preview_asker *, struct preview_picture *);
    // Private to the previews:
    struct preview *preview; // NULL: not asking
    struct rate rate;
    uint32_t epoch;   // of the last picture
    unsigned round;   // of that picture
    int64_t until_ns; // CLOCK_MONOTONIC
    struct preview_asker *next, *next_patient;
};

struct preview_counts {
    uint64_t made, dropped; // JPEGs; due ones not made, since the threads were behind
    uint64_t busy_ns;       // processor time of the threads
    int kinds;              // previews with askers
};

// --- loop thread
int previews_open(struct previews **ret, uv_loop_t *, struct event_queue *); // 0 or negative errno
// Ends the threads: nothing is posted any more, and preview_ask fails.
void previews_stop(struct previews *);
void previews_close(struct previews *); // once every source is closed; accepts NULL
struct preview_counts previews_counts(struct previews *);

// The camera's name and lease outlive the source. Returns 0 or -ENOMEM.
int preview_source_open(struct preview_source **ret, struct previews *, const char *camera,
                        const struct device_lease *);
// Call after preview_drain, once the camera's thread has ended. Accepts NULL.
void preview_source_close(struct preview_source *);
// Returns 0; -ENOSPC: too many kinds of the camera; -ESHUTDOWN; or another negative errno.
int preview_ask(struct preview_source *, struct preview_asker *);
void preview_leave(struct preview_asker *); // accepts one that does not ask

// --- camera's thread
// Offers the camera's next picture, which the caller still owns. Looks an output up in the
// subscriptions. Takes no lock without askers. Both accept NULL.
void preview_offer(struct preview_source *, struct frame *, const struct subscriptions *);
// Call before the lease is released, or before the decoder needs its pictures back.
void preview_drain(struct preview_source *);

#endif
