// Makes the capture times of one camera's pictures rise within an epoch: an arrival time may be
// followed by an earlier time from a sender report, and a camera may set its clock. Used by one
// thread; ready when zeroed.
#ifndef FRAMED_DAEMON_CAMERA_CAPTURE_TIME_H
#define FRAMED_DAEMON_CAMERA_CAPTURE_TIME_H

#include "daemon/decode/frame.h"

struct capture_time {
    bool begun;
    uint32_t epoch;
    int64_t last_ns;          // of the last picture in that epoch
    int64_t last_pts_ns;      // of that picture
    bool by_clock;            // last_ns came from a sender report
    int64_t last_received_ns; // CLOCK_MONOTONIC
    int64_t doubted_until_ns; // CLOCK_MONOTONIC; 0: sender reports are trusted
};

// Call if the stream's own time jumps with this picture. The last sender report is from before the
// jump, so capture times come from the time of arrival until the next report.
void capture_time_doubt(struct capture_time *, const struct frame_info *);
// True if the picture has to begin an epoch: its capture time is far back, or makes a step that the
// pts do not make, because the camera set its clock.
bool capture_time_jumps(const struct capture_time *, const struct frame_info *);
// Call for each picture in display order, with its epoch. Moves a capture time that is not later
// than the last one forward, and clears its flag for a sender report.
void capture_time_rise(struct capture_time *, struct frame_info *);

#endif
