// What a camera's packets say of its stream: how many bytes they have, how far apart its keyframes
// are, and how its clock goes beside ours. The camera's thread writes; any thread reads. Zeroed it
// is ready.
#ifndef FRAMED_DAEMON_CAMERA_PACKET_REPORT_H
#define FRAMED_DAEMON_CAMERA_PACKET_REPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct packet;

struct packet_report {
    _Atomic uint64_t bytes;
    _Atomic int64_t keyframe_ns; // between the last two keyframes; 0: not known
    _Atomic bool has_clock;      // capture times come from sender reports, and these are known:
    // Of the camera's clock from ours, when a picture's first packet comes: with clocks that are
    // both right the time that pictures are on their way, below 0. And how far single pictures are
    // from it, on average.
    _Atomic int64_t offset_ns, jitter_ns;
    // Private:
    bool has_key;
    int64_t key_pts_ns;
};

void packet_report_connect(struct packet_report *); // other packets begin
// `came_ns`: since 1970, when its first network packet came.
void packet_report_read(struct packet_report *, const struct packet *, int64_t came_ns);

#endif
