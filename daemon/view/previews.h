// JPEGs of cameras' pictures, and of what their outputs make of these, for whoever looks at them.
//
// A preview is a JPEG of one kind of one camera, again and again. It exists while somebody asks for
// it; all who ask for the same share it. One thread makes the JPEGs of all pictures that lie on the
// host, with less priority than any other, and one those of pictures on GPUs, with everybody's: it
// takes the driver's locks, for which outputs would wait if it was not let run. A camera's thread
// leaves them the picture that is due, in place of one that they have not come to, and leaves none
// while they have one of that camera. So at most one picture of a camera is held, no output waits
// for a preview, and where the threads cannot keep up previews are newer and fewer. A picture is
// read where it lies, on the device by a plan of its own, and given back before it is encoded.
//
// Nothing is decoded for a preview that is not decoded anyway.
//
// One lock guards what the threads share. It is taken after no other, and before that of a camera's
// pictures; nobody holds it while a picture is read or encoded.
#ifndef FRAMED_DAEMON_VIEW_PREVIEWS_H
#define FRAMED_DAEMON_VIEW_PREVIEWS_H

#include "daemon/base/event_queue.h"
#include "daemon/decode/frame.h"
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

// A JPEG with what it shows, or why there is none.
struct preview_picture {
    int references;                // loop thread
    char facts[PREVIEW_FACTS_MAX]; // a JSON object
    char why[PREVIEW_WHY_MAX];     // there is no JPEG for this reason; else ""
    int64_t capture_ns, pts_ns;    // as of struct frame_info
    uint64_t sequence;             // of the output, or counts the camera's pictures
    uint32_t epoch, flags;         // likewise
    size_t size;                   // of the JPEG
    uint8_t file[];
};

struct preview_picture *preview_picture_ref(struct preview_picture *); // returns its argument
void preview_picture_unref(struct preview_picture *);                  // accepts NULL
// In place of a picture, why there is none; `output` may be "". NULL: out of memory.
struct preview_picture *preview_picture_refuse(const char *camera, const char *output,
                                               const char *why);

struct preview_wish {
    char output[PREVIEW_NAME_MAX + 1]; // its results, in their own size; "": the camera's pictures
    int plane;                         // of an output: one channel alone, from 0; below 0: all
    int width;                         // of a camera's picture: PREVIEW_WIDTH_MIN to _MAX
    double fps;                        // most pictures a second; 0: one picture, as good as can be
};

// Who asks; the caller's, from preview_ask to preview_leave, or until it was told that it is over.
struct preview_asker {
    struct preview_wish wish;
    int64_t patience_ns; // after that without a picture it is told so; 0: it waits for ever
    // Loop thread. The picture is valid during the call, but for who takes a reference. May leave.
    // It is over with the first call where wish.fps is 0, and where `preview` is NULL: the camera
    // is gone.
    void (*take)(struct preview_asker *, struct preview_picture *);
    // The previews' own:
    struct preview *preview; // NULL: not asking
    struct rate rate;
    uint32_t epoch;   // of the last picture
    unsigned round;   // of that
    int64_t until_ns; // CLOCK_MONOTONIC
    struct preview_asker *next, *next_patient;
};

struct preview_counts {
    uint64_t made, dropped; // JPEGs; those that were due and not made, as the threads were behind
    uint64_t busy_ns;       // processor time of the threads
    int kinds;              // previews that are asked for now
};

// --- loop thread
int previews_open(struct previews **ret, uv_loop_t *, struct event_queue *); // 0 or negative errno
// Ends the threads: nothing is posted any more, and nobody can ask.
void previews_stop(struct previews *);
void previews_close(struct previews *); // once every source is closed; accepts NULL
struct preview_counts previews_counts(struct previews *);

// The lease is the camera's; both outlive the source. 0 or -ENOMEM.
int preview_source_open(struct preview_source **ret, struct previews *, const char *camera,
                        const struct device_lease *);
// After preview_drain, with the camera's thread ended. Accepts NULL.
void preview_source_close(struct preview_source *);
// 0; -ENOSPC: too many kinds of the camera are asked for; -ESHUTDOWN; other negative errno.
int preview_ask(struct preview_source *, struct preview_asker *);
void preview_leave(struct preview_asker *); // accepts one that does not ask

// --- camera's thread
// The camera's next picture, which stays the caller's; each accepts NULL. An output is looked for
// in the subscriptions. Takes no lock while nobody asks.
void preview_offer(struct preview_source *, struct frame *, const struct subscriptions *);
// Before the lease is released, or the decoder is to have its pictures back.
void preview_drain(struct preview_source *);

#endif
