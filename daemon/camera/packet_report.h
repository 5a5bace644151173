// Figures from a camera's packets: their bytes, the distance of its keyframes, and the offset of
// its clock from ours. The camera's thread writes; any thread reads. Ready when zeroed.
#ifndef FRAMED_DAEMON_CAMERA_PACKET_REPORT_H
#define FRAMED_DAEMON_CAMERA_PACKET_REPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct packet;

struct packet_report {
    _Atomic uint64_t bytes;
    _Atomic int64_t keyframe_ns; // between the last two keyframes; 0: unknown
    _Atomic bool has_clock;      // capture times are from sender reports, the next two valid:
    // Camera's clock minus ours when a picture's first packet arrives; if both clocks are right,
    // this is minus the transit time. And the mean deviation of single pictures from it.
    _Atomic int64_t offset_ns, jitter_ns;
    // Private:
    bool has_key;
    int64_t key_pts_ns;
};

void packet_report_connect(struct packet_report *); // another connection begins
// `came_ns`: arrival of its first network packet, since 1970.
void packet_report_read(struct packet_report *, const struct packet *, int64_t came_ns);

#endif
