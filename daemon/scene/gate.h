// Which pictures an output's `gate` lets through: those in which something moves, those that differ
// from the last that went through, and one now and then. It counts by timestamps, so that a file at
// full pace gives the same pictures as a camera. Pure.
#ifndef FRAMED_DAEMON_SCENE_GATE_H
#define FRAMED_DAEMON_SCENE_GATE_H

#include "daemon/decode/frame.h"

// Of one output; zeroed at first. The timestamps are those of one epoch.
struct gate {
    bool begun; // a picture went through, in this epoch and of this size, and the next five hold
    uint32_t epoch;
    int width, height; // of the source
    int64_t passed_ns; // pts of the last picture that went through
    bool has_reference;
    uint64_t reference; // fingerprint of the last one that was whole
    bool moved;         // something has moved in this epoch, last in the picture of this pts:
    int64_t moved_ns;
};

// Whether the picture may go through; always where the configuration has no gate. Asked of each
// picture, in order, also where the output wants it for nothing else: motion that is seen holds the
// gate open for the pictures after it. A picture of which nothing is known goes through, and a
// damaged one where the gate is open already, or a picture is due.
bool gate_opens(struct gate *, const struct gate_config *, const struct frame_info *);
// The picture went through, and its output got it.
void gate_passed(struct gate *, const struct frame_info *);

#endif
