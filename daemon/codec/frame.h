// One decoded picture with its facts. Passing a frame on gives it away, even on failure.
#ifndef FRAMED_DAEMON_CODEC_FRAME_H
#define FRAMED_DAEMON_CODEC_FRAME_H

#include "config/config.h"
#include "kernels/image.h"

// The field of an interlaced picture that is shown first.
enum field_order { FIELDS_NONE, FIELDS_TOP_FIRST, FIELDS_BOTTOM_FIRST, FIELDS_UNKNOWN };

// Results of the camera's analysis (daemon/scene/scene.h) of a picture.
struct scene_facts {
    bool known;      // analysed (damaged pictures are not); if false, all but `refused` is 0
    bool moving;     // something moves
    bool light;      // the whole picture became lighter or darker at once
    bool learning;   // the analysis has seen too few pictures to detect motion
    unsigned alarms; // raised ones: bit 1 << enum alarm
    uint64_t fingerprint;
    float mean, sharpness; // of luma: mean level, and mean of the absolute Laplacian
    bool refused;          // the configuration does not fit pictures of this geometry
};

struct frame_info {
    int64_t pts_ns;      // unwrapped, rising within an epoch
    int64_t capture_ns;  // since 1970
    int64_t received_ns; // CLOCK_MONOTONIC
    int64_t decoded_ns;  // CLOCK_MONOTONIC
    int64_t delay_ns;    // how much later a live picture was decoded than others of its camera
    uint32_t epoch;
    uint32_t flags; // enum framed_flags
    // Set by the decoder for the picture, then by the camera for the stream so far.
    enum field_order field_order;
    bool converted; // by libswscale, to a format that kernels read
    bool waited;    // the input waited for it; else it may have been ready before received_ns
    int source_width, source_height;
    struct scene_facts scene;
};

struct frame {
    struct image image; // valid until frame_release
    // The picture was lost to damage, or withheld by the policy `damaged`. It counts, and the frame
    // is otherwise empty.
    bool lost;
    bool refused;           // lost because there is no memory for such pictures
    int rate_num, rate_den; // nominal pictures per second of the stream; 0/0: unknown
    struct frame_info info;
    int surfaces; // of the decoder on the device that holds it; 0: on the host, or unknown
    enum stream_codec codec; // of that decoder
    void *owner;
    void (*release)(void *owner); // any thread but a CUDA host function
};

// Returns when the frame exceeds `max_age_ns`, by CLOCK_MONOTONIC; 0 is no limit: INT64_MAX.
int64_t frame_late_ns(const struct frame_info *, int64_t max_age_ns);
bool frame_is_late(const struct frame_info *, int64_t max_age_ns);

void frame_release(struct frame *); // empties *frame; accepts an empty one
// Makes *ret another owner of the picture, which is released with the last owner. Returns 0 or
// -ENOMEM.
int frame_share(struct frame *, struct frame *ret);

// Properties of a stream's pictures that framed passes on without conversion: interlaced, or HDR.
// Zeroed, it is a stream of progressive SDR pictures.
struct video_signal {
    enum field_order field_order; // FIELDS_UNKNOWN: not the same in all interlaced pictures
    bool hdr;
};

// Takes the next picture, the first of its stream if `begins`, and sets its field_order to the
// stream's. An interlaced stream may contain progressive pictures and stays interlaced.
void video_signal_follow(struct video_signal *, struct frame_info *, bool begins);

// Return a sentence for the log: the state, and its effect for the user.
const char *video_signal_explain_fields(const struct video_signal *);
const char *video_signal_explain_hdr(const struct video_signal *);

#endif
