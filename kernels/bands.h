// How a big frame is cut into bands so that upload, kernel and download overlap: chosen by
// simulating the three on what the link was measured to do. Pure.
#ifndef FRAMED_KERNELS_BANDS_H
#define FRAMED_KERNELS_BANDS_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BANDS_MAX = 64 };

// What a device and the way to it can do: bytes per second, and seconds.
struct link {
    double up, down;           // pinned copies, one direction alone
    double up_both, down_both; // each while the other direction works, too
    double kernel;             // read and written
    double copy;               // what a copy costs its queue beside its bytes
    double handover;           // from the end of work to the start of what waits for it elsewhere
    double submit;             // the CPU's time to put one band on the streams
};

extern const struct link link_default; // a modest device, where nothing was measured

// One frame, seen as a queue of source rows.
struct band_work {
    struct band rows; // that any op reads, from an even row on
    double up;        // bytes to upload per row; 0: the frame is on the device already
    // Of rows.y1 - rows.y0 + 1 numbers, number i: the result bytes that can be made of the first i
    // rows. Rising.
    const double *made;
    int up_copies, down_copies; // that a band takes
};

// Seconds from the submission of one frame to its last result byte.
double bands_time(const struct band bands[], int n, const struct band_work *, const struct link *);

// Both return the number of bands, at least 1; all start on even rows. Graded: what takes the
// shortest time of a family of gradings; one band where cutting gains little.
int bands_equal(struct band bands[BANDS_MAX], struct band rows, int n);
int bands_graded(struct band bands[BANDS_MAX], const struct band_work *, const struct link *);

#ifdef __cplusplus
}
#endif
#endif
