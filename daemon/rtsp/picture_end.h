// How far a camera's markers tell the end of a picture, learnt over its last 64 pictures. Zeroed it
// begins anew; kept over connections. Pure.
#ifndef FRAMED_DAEMON_RTSP_PICTURE_END_H
#define FRAMED_DAEMON_RTSP_PICTURE_END_H

#include <stdbool.h>
#include <stdint.h>

enum picture_end {
    PICTURE_END_LEARNING,
    PICTURE_END_MARKER,    // trusted: a picture ends with its marker
    PICTURE_END_PER_SLICE, // every slice is marked: with the n-th marker
    PICTURE_END_NONE,      // no markers: with silence
};

enum { PICTURE_END_HISTORY = 64 };

struct picture_end_verdict {
    enum picture_end end;
    uint64_t unmarked, early; // private from here on; a bit for each picture, bit 0 the last
    int pictures;             // known, at most PICTURE_END_HISTORY
    int markers;              // of the last picture
    int steady;               // so many pictures in a row had as many markers
    int64_t gap_ns[PICTURE_END_HISTORY]; // the longest silence inside each; a ring
    int next_gap;
    int64_t usual_gap_ns; // of those
    int64_t split_ns;     // the least silence, doubled where silence split a picture
    int64_t interval_ns;  // from picture to picture, the mean; 0: not known
};

// What is known of a picture, complete or not.
struct picture_end_signs {
    int markers;         // behind its slices
    bool early;          // packets of it came behind a marker
    bool unmarked;       // it had no marker
    bool damaged;        // packets of it are missing: perhaps its marker
    int64_t gap_ns;      // the longest silence between its packets
    int64_t interval_ns; // since the picture before; 0: not known
};

const char *picture_end_name(enum picture_end); // "marker", for the status
// A picture is complete. One that is damaged teaches nothing.
void picture_end_learn(struct picture_end_verdict *, const struct picture_end_signs *);
// The last picture went on behind its end: the marker, or the silence, that ended it.
void picture_end_went_on(struct picture_end_verdict *, bool marked, bool silent);
// Whether the marker that has just come ends the picture now. It is counted in `signs`.
bool picture_end_at_marker(const struct picture_end_verdict *, const struct picture_end_signs *);
// After how much silence the picture, of which slices are held, ends; INT64_MAX: it waits for the
// next. `marked`: a marker came last.
int64_t picture_end_silence_ns(const struct picture_end_verdict *, const struct picture_end_signs *,
                               bool marked);

#endif
