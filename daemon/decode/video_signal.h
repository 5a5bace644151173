// Properties of a stream's pictures that framed passes on without conversion: interlaced, or HDR.
// Pure. Zeroed, it is a stream of progressive SDR pictures.
#ifndef FRAMED_DAEMON_DECODE_VIDEO_SIGNAL_H
#define FRAMED_DAEMON_DECODE_VIDEO_SIGNAL_H

#include "daemon/decode/frame.h"

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
