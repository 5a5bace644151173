// Decides which pictures an output gets: at most so many per second (`fps`), and with `gate` only
// pictures with motion, and one now and then. It counts by timestamps, so that a file at full pace
// gives the same pictures as a camera. Pure.
#ifndef FRAMED_DAEMON_OUTPUT_GATE_H
#define FRAMED_DAEMON_OUTPUT_GATE_H

#include "daemon/codec/frame.h"

// For one output; zeroed at first. The timestamps are from one epoch.
struct gate {
    bool begun; // a picture of this epoch and size has passed, and the next four are valid
    uint32_t epoch;
    int width, height; // of the source
    int64_t passed_ns; // pts of the last picture passed
    bool moved;        // motion was seen in this epoch, last at this pts:
    int64_t moved_ns;
};

// True if the picture may pass; always without a gate in the configuration. Call it for every
// picture, in order, even if the output drops the picture anyway: motion holds the gate open for
// later pictures. A picture without an analysis passes. A damaged one passes if the gate is already
// open or a picture is due.
bool gate_opens(struct gate *, const struct gate_config *, const struct frame_info *);
// Call when the picture has passed and its output got it.
void gate_passed(struct gate *, const struct frame_info *);

// Limits frames per second.
struct rate {
    double fps;     // 0 keeps all
    bool begun;     // due_ns is valid
    int64_t due_ns; // the first frame at this pts or later is kept
};

bool rate_keeps(struct rate *, int64_t pts_ns);
// Limits a nominal rate of *num / *den frames per second; 0/0: unknown.
void rate_limit(const struct rate *, int *num, int *den);
void rate_restart(struct rate *); // timestamps restart: the next frame is kept

#endif
