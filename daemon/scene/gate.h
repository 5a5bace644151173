// Decides which pictures an output's `gate` lets pass: pictures with motion, pictures that differ
// from the last one passed, and one now and then. It counts by timestamps, so that a file at full
// pace gives the same pictures as a camera. Pure.
#ifndef FRAMED_DAEMON_SCENE_GATE_H
#define FRAMED_DAEMON_SCENE_GATE_H

#include "daemon/decode/frame.h"

// For one output; zeroed at first. The timestamps are from one epoch.
struct gate {
    bool begun; // a picture of this epoch and size has passed, and the next five are valid
    uint32_t epoch;
    int width, height; // of the source
    int64_t passed_ns; // pts of the last picture passed
    bool has_reference;
    uint64_t reference; // fingerprint of the last undamaged one passed
    bool moved;         // motion was seen in this epoch, last at this pts:
    int64_t moved_ns;
};

// True if the picture may pass; always without a gate in the configuration. Call it for every
// picture, in order, even if the output drops the picture anyway: motion holds the gate open for
// later pictures. A picture without an analysis passes. A damaged one passes if the gate is already
// open or a picture is due.
bool gate_opens(struct gate *, const struct gate_config *, const struct frame_info *);
// Call when the picture has passed and its output got it.
void gate_passed(struct gate *, const struct frame_info *);

#endif
