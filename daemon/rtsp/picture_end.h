// Learns from a camera's last 64 pictures how reliably its markers end a picture. Zeroed: nothing
// learnt. Kept over connections. Pure.
#ifndef FRAMED_DAEMON_RTSP_PICTURE_END_H
#define FRAMED_DAEMON_RTSP_PICTURE_END_H

#include <stdbool.h>
#include <stdint.h>

enum picture_end {
    PICTURE_END_LEARNING,
    PICTURE_END_MARKER,    // trusted: a picture ends with its marker
    PICTURE_END_PER_SLICE, // every slice is marked: a picture ends with its n-th marker
    PICTURE_END_NONE,      // no markers: a picture ends with silence
};

enum { PICTURE_END_HISTORY = 64 };

struct picture_end_verdict {
    enum picture_end end;
    uint64_t unmarked, early;            // private from here on; a bit per picture, bit 0 the last
    int pictures;                        // number learnt, at most PICTURE_END_HISTORY
    int markers;                         // of the last picture
    int steady;                          // pictures in a row with that many markers
    int64_t gap_ns[PICTURE_END_HISTORY]; // longest silence inside each; a ring
    int next_gap;
    int64_t usual_gap_ns; // of those, without stalls
    int64_t split_ns;     // minimum silence, doubled when silence split a picture
    int64_t interval_ns;  // mean time from picture to picture; 0: unknown
};

// The facts about one picture, complete or not.
struct picture_end_signs {
    int markers;         // after its slices
    bool early;          // some of its packets followed a marker
    bool unmarked;       // it had no marker
    bool damaged;        // packets are missing, perhaps its marker
    int64_t gap_ns;      // the longest silence between its packets
    int64_t interval_ns; // since the previous picture; 0: unknown
};

const char *picture_end_name(enum picture_end); // "marker", for the status
// Learns from a complete picture; ignores a damaged one.
void picture_end_learn(struct picture_end_verdict *, const struct picture_end_signs *);
// Reports that the last picture continued after the marker or silence that ended it.
void picture_end_went_on(struct picture_end_verdict *, bool marked, bool silent);
// Returns true if the marker just received, already counted in `signs`, ends the picture now.
bool picture_end_at_marker(const struct picture_end_verdict *, const struct picture_end_signs *);
// Returns the silence that ends a picture with slices; INT64_MAX: only the next picture ends it.
// `marked`: a marker followed the last slice.
int64_t picture_end_silence_ns(const struct picture_end_verdict *, const struct picture_end_signs *,
                               bool marked);

#endif
