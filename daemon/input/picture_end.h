// How far a camera's markers tell the end of a picture, learnt over its last 64 pictures. Zeroed it
// begins anew; kept over connections. Pure.
#ifndef FRAMED_DAEMON_INPUT_PICTURE_END_H
#define FRAMED_DAEMON_INPUT_PICTURE_END_H

#include <stdbool.h>
#include <stdint.h>

enum picture_end {
    PICTURE_END_LEARNING,
    PICTURE_END_MARKER,    // trusted: a picture ends with its marker
    PICTURE_END_PER_SLICE, // every slice is marked: with the n-th marker
    PICTURE_END_NONE,      // no markers: with silence
};

struct picture_end_verdict {
    enum picture_end end;
    uint64_t late, early; // private from here on
    int pictures, slices, steady;
    int64_t gap_ns[64];
    int n_gaps;
    int64_t silence_ns;
};

const char *picture_end_name(enum picture_end); // "marker", for the status

#endif
