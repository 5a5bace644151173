// JPEGs of cameras' pictures, and of their outputs' results, for viewers. Loop thread only.
//
// A preview is a repeated JPEG of one kind of one camera; readers of the same kind share it. Its
// pictures come from an output for viewers (struct demand), which the camera has beside its own
// outputs from the first reader until some time after the last one. The camera's thread makes a
// result when one is due, without waiting for room, and libuv's threads make a JPEG of the newest
// result: one at a time for each preview, and on half of the processors for all of them.
//
// Nothing is decoded only for a preview.
#ifndef FRAMED_DAEMON_VIEW_PREVIEWS_H
#define FRAMED_DAEMON_VIEW_PREVIEWS_H

#include "daemon/base/loop.h"
#include "daemon/output/subscriptions.h"

enum {
    PREVIEW_WIDTH_MIN = 64, // of a camera's picture, pixels
    PREVIEW_WIDTH_MAX = 1920,
    PREVIEW_KINDS_MAX = DEMANDS_MAX, // of one camera at once
    PREVIEW_FACTS_MAX = 1024,
    PREVIEW_WHY_MAX = 256,
    PREVIEW_NAME_MAX = 31, // bytes of a camera's or an output's name
};
#define PREVIEW_FPS_MIN 0.2
#define PREVIEW_FPS_MAX 30.0

struct previews;
struct preview;

// One camera, which the previews use until preview_source_close.
struct preview_source {
    struct previews *previews; // NULL: it has none
    const char *camera;
    const struct subscriptions *outputs; // the camera's own
    // The camera should get the list of preview_source_extend.
    void (*changed)(struct preview_source *);
};

// A JPEG with its facts, or the reason for having none.
struct preview_picture {
    int references;
    char facts[PREVIEW_FACTS_MAX]; // a JSON object
    char why[PREVIEW_WHY_MAX];     // why there is no JPEG; else ""
    int64_t capture_ns;            // as in struct frame_info
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

struct preview_kind {
    char output[PREVIEW_NAME_MAX + 1]; // show its results, in their size; "": the camera's pictures
    int plane;                         // of an output: the only channel shown, from 0; below 0: all
    int width;                         // of a camera's picture: PREVIEW_WIDTH_MIN to _MAX
    double fps;                        // most pictures a second; 0: one picture, at best quality
};

// The caller keeps it from preview_start to preview_stop, or until `take` ends it.
struct preview_reader {
    struct preview_kind kind;
    int64_t patience_ns; // time without a picture until it gets a refusal; 0: no limit
    // The picture is valid during the call, or longer with a reference. May stop. The reader ends
    // with its first call if kind.fps is 0, and with a call where `preview` is NULL: the camera or
    // the output is gone.
    void (*take)(struct preview_reader *, struct preview_picture *);
    // Private to the previews:
    struct preview *preview; // NULL: not reading
    unsigned round;          // of the last picture
    int64_t until_ns; // CLOCK_MONOTONIC: end of its patience; 0: has got a picture, or no limit
    struct preview_reader *next;
};

struct preview_counts {
    uint64_t made, dropped; // JPEGs; results that newer ones replaced before a JPEG was made
    uint64_t busy_ns;       // processor time of making JPEGs
    int kinds;              // previews with readers
};

int previews_open(struct previews **ret, uv_loop_t *, struct work_queue *); // 0 or -ENOMEM
// Makes no picture any more; preview_start fails.
void previews_stop(struct previews *);
void previews_close(struct previews *); // once every source is closed; accepts NULL
struct preview_counts previews_counts(const struct previews *);

// Frees previews that ended and are in no list any more. Accepts NULL.
void previews_reap(struct previews *);

// --- a camera's previews; all accept a source without previews
// Switches to other outputs of the camera, which gets a new list afterwards.
void preview_source_follow(struct preview_source *, const struct subscriptions *);
// Returns a list of the camera's outputs and its previews'. NULL: it has no previews, or there is
// no memory.
struct subscriptions *preview_source_extend(struct preview_source *);
// Call once no list has a preview's output. Tells readers that the camera is gone.
void preview_source_close(struct preview_source *);

// Returns 0; -ENOENT: the camera has no such output; -EINVAL: that is not made of every picture;
// -ENOSPC: too many kinds of the camera; -ESHUTDOWN; or -ENOMEM.
int preview_start(struct preview_source *, struct preview_reader *);
void preview_stop(struct preview_reader *); // accepts one that does not read

#endif
