// One decoded picture and what is known of it. Passing a frame on gives it away, even on failure.
#ifndef FRAMED_DAEMON_DECODE_FRAME_H
#define FRAMED_DAEMON_DECODE_FRAME_H

#include "config/config.h"
#include "kernels/image.h"

// Which of its two fields an interlaced picture shows first.
enum field_order { FIELDS_NONE, FIELDS_TOP_FIRST, FIELDS_BOTTOM_FIRST, FIELDS_UNKNOWN };

// What the camera's analysis (daemon/scene/scene.h) saw in a picture.
struct scene_facts {
    bool known;      // it was analysed, which damaged pictures are not; else all but `refused` is 0
    bool moving;     // something moves
    bool light;      // all of it became lighter or darker at once
    bool learning;   // the analysis has seen too few pictures to know what moves
    unsigned alarms; // that are raised: bit 1 << enum alarm
    uint64_t fingerprint;
    float mean, sharpness; // of luma: mean level, and mean of the absolute Laplacian
    bool refused;          // the configuration does not fit pictures of this geometry
};

struct frame_info {
    int64_t pts_ns;      // unwrapped, rising within an epoch
    int64_t capture_ns;  // since 1970
    int64_t received_ns; // CLOCK_MONOTONIC
    int64_t decoded_ns;  // CLOCK_MONOTONIC
    int64_t delay_ns;    // by which a live picture was decoded later than others of its camera
    uint32_t epoch;
    uint32_t flags; // enum framed_flags
    // The decoder fills in the picture's own; the camera makes it that of the stream so far.
    enum field_order field_order;
    bool converted; // by libswscale, to a format that kernels read
    bool waited;    // the input waited for it: else it may have lain ready before received_ns
    int source_width, source_height;
    struct scene_facts scene;
};

struct frame {
    struct image image; // valid until frame_release
    // The decoder lost this picture to damage, or the policy `damaged` withheld it: it counts, and
    // the frame is empty but for this.
    bool lost;
    bool refused;           // lost because there is no memory for such pictures
    int rate_num, rate_den; // nominal pictures per second of the stream; 0/0: unknown
    struct frame_info info;
    int surfaces; // of the device's decoder that it lies in; 0: on the host, or not known
    enum stream_codec codec; // of that decoder
    void *owner;
    void (*release)(void *owner); // any thread but a CUDA host function
};

// CLOCK_MONOTONIC: when it is older than `max_age_ns`; 0 is no limit, and gives INT64_MAX.
int64_t frame_late_ns(const struct frame_info *, int64_t max_age_ns);
bool frame_is_late(const struct frame_info *, int64_t max_age_ns);

void frame_release(struct frame *); // empties *frame; accepts an empty one
// Makes *ret another owner of the picture, which is given back when both are released. 0 or
// -ENOMEM.
int frame_share(struct frame *, struct frame *ret);

#endif
