// An access unit received over RTP: one picture and the data that belongs to it.
#ifndef FRAMED_DAEMON_RTSP_ACCESS_UNIT_H
#define FRAMED_DAEMON_RTSP_ACCESS_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ACCESS_UNIT_PADDING = 64 };

struct access_unit {
    // H.264 and H.265: NAL units with start codes, both fields where a frame has two; MJPEG: a JFIF
    // picture. Followed by ACCESS_UNIT_PADDING zero bytes, which `bytes` does not count.
    const uint8_t *data;
    size_t bytes;
    uint32_t timestamp;
    int64_t received_ns, arrived_ns; // first and last packet, CLOCK_MONOTONIC
    bool keyframe;                   // IDR, IRAP, a recovery point with intra slices only, any JPEG
    bool has_sets;                   // contains parameter sets
    bool disposable; // no other picture references it (nal_ref_idc 0; sub-layer non-reference)
    bool damaged;    // one of its packets is missing
    // Missing packets before it were, or may have been, whole pictures. False if the same loss
    // damaged the picture before it and others reference that one.
    bool reference_lost;
    uint32_t lost;  // packets missing in it and before it, since the previous unit
    bool hole;      // packets are missing, perhaps an unknown number
    bool restarted; // first unit of a restarted sender
};

#endif
