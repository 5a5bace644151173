// One access unit as RTP brought it: a picture with what belongs to it.
#ifndef FRAMED_DAEMON_RTSP_ACCESS_UNIT_H
#define FRAMED_DAEMON_RTSP_ACCESS_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ACCESS_UNIT_PADDING = 64 };

struct access_unit {
    // H.264 and H.265: NAL units with start codes, both fields where a frame has two; MJPEG: a JFIF
    // picture. Followed by ACCESS_UNIT_PADDING zero bytes, which are not counted.
    const uint8_t *data;
    size_t bytes;
    uint32_t timestamp;
    int64_t received_ns, arrived_ns; // its first packet, its last packet: CLOCK_MONOTONIC
    bool keyframe;                   // IDR or IRAP, a recovery point that begins with one, any JPEG
    bool has_sets;                   // parameter sets came with it
    bool disposable; // no other picture refers to it (nal_ref_idc 0; sub-layer non-reference)
    bool damaged;    // a packet of it is missing
    // Packets before it are missing that were, or may have been, whole pictures. Not where the
    // picture before it is damaged by the same packets and others refer to that.
    bool reference_lost;
    uint32_t lost;  // packets missing in it and before it, since the unit before
    bool hole;      // some are, be it that their number is not known
    bool restarted; // the sender began anew with it
};

#endif
