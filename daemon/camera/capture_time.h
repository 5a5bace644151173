// The capture times of one camera's pictures rise within an epoch, though a time of arrival may be
// followed by an earlier one from a sender report, and a camera may set its clock. One thread uses
// it; zeroed it is ready.
#ifndef FRAMED_DAEMON_CAMERA_CAPTURE_TIME_H
#define FRAMED_DAEMON_CAMERA_CAPTURE_TIME_H

#include "daemon/decode/frame.h"

struct capture_time {
    bool begun;
    uint32_t epoch;
    int64_t last_ns;          // of the last picture in that epoch
    int64_t last_pts_ns;      // of that picture
    bool by_clock;            // it came from a sender report
    int64_t last_received_ns; // CLOCK_MONOTONIC
    int64_t doubted_until_ns; // CLOCK_MONOTONIC; 0: the sender's reports are believed
};

// The stream's own time jumped with this picture. The last sender report is of the time before, so
// capture times by it are wrong until the next one: they are taken from the time of arrival.
void capture_time_doubt(struct capture_time *, const struct frame_info *);
// Whether an epoch has to begin with the picture: its capture time is far back, or makes a step
// that the pictures' own times do not make, since the camera set its clock.
bool capture_time_jumps(const struct capture_time *, const struct frame_info *);
// For each picture in the order in which they are shown, with its epoch: one that is not later than
// the picture before is made so, and then does not come from a sender report.
void capture_time_rise(struct capture_time *, struct frame_info *);

#endif
