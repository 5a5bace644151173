// The times of a copy's packets. A camera's own times may begin anew with each connection, jump,
// or be missing; those of a file have to rise. One thread uses a timeline; zeroed it is ready.
#ifndef FRAMED_DAEMON_OUTPUT_TIMELINE_H
#define FRAMED_DAEMON_OUTPUT_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

enum { TIMELINE_DELAY_MAX = 16 }; // pictures: the most that H.264 and H.265 may reorder by

// In ns; dts rises from packet to packet and is not above pts.
struct packet_times {
    int64_t pts, dts;
};

struct timeline {
    bool begun;
    int64_t pts_ns, received_ns; // of the last packet, as the camera says it
    int64_t shift_ns;            // from the camera's times to continuous ones
    int64_t interval_ns;         // between the last pictures, by dts; 0: unknown
    int delay; // pictures that may have to be decoded before the one that is shown
    int64_t last_dts;
    int n;                                   // of:
    int64_t pending[TIMELINE_DELAY_MAX + 1]; // times of presentation that are no dts yet, rising
};

// Before the next packet, which is a keyframe: dts fall behind pts by `delay` pictures, or by as
// many as the stream has shown to need.
void timeline_begin(struct timeline *, int delay);
// The next packet, in decoding order. `pts_ns` INT64_MIN: unknown. A camera that begins anew goes
// on where it was, as much later as its packets came later.
struct packet_times timeline_next(struct timeline *, int64_t pts_ns, int64_t received_ns);

#endif
