// Timestamps for a copy's packets. A camera's own times may restart with each connection, jump, or
// be missing; a file's times have to rise. One thread uses a timeline; zeroed it is ready.
#ifndef FRAMED_DAEMON_OUTPUT_TIMELINE_H
#define FRAMED_DAEMON_OUTPUT_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

enum { TIMELINE_DELAY_MAX = 16 }; // pictures: the most that H.264 and H.265 may reorder by

// In ns; dts rises from packet to packet and never exceeds pts.
struct packet_times {
    int64_t pts, dts;
};

struct timeline {
    bool begun;
    int64_t pts_ns, received_ns; // of the last packet, not shifted
    int64_t shift_ns;            // from the camera's times to continuous ones
    int64_t interval_ns;         // between the last two pictures, by dts; 0: unknown
    int delay;                   // pictures that may be decoded ahead of the one shown
    int64_t last_dts;
    int n;                                   // entries of:
    int64_t pending[TIMELINE_DELAY_MAX + 1]; // pts not yet used as dts, rising
};

// Call before a keyframe: dts lags pts by `delay` pictures, or by more if the stream needed more.
void timeline_begin(struct timeline *, int delay);
// Returns the times of the next packet, in decoding order. `pts_ns` INT64_MIN: unknown. If the
// camera's times restart, they continue from the last packet, later by the time between arrivals.
struct packet_times timeline_next(struct timeline *, int64_t pts_ns, int64_t received_ns);

#endif
