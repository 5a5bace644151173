// Cuts a big frame into bands so that upload, kernel and download overlap. Cuts are chosen by
// simulation with the measured speeds of the link. Pure.
#ifndef FRAMED_KERNELS_BANDS_H
#define FRAMED_KERNELS_BANDS_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BANDS_MAX = 64 };

// Speeds of a device and of the link to it: bytes per second, and seconds.
struct link {
    double up, down;           // pinned copies, one direction alone
    double up_both, down_both; // each while the other direction is busy
    double kernel;             // bytes read and written
    double copy;               // overhead of a copy in its queue
    double handover;           // from the end of work to the start of dependent work elsewhere
    double submit;             // CPU time to put one band on the streams
};

extern const struct link link_default; // a modest device, for use without measurements

// One frame, seen as a queue of source rows.
struct band_work {
    struct band rows; // all rows that any op reads, from an even row on
    double up;        // bytes to upload per row; 0: the frame is already on the device
    // rows.y1 - rows.y0 + 1 numbers, ascending: number i is the result bytes that can be made from
    // the first i rows.
    const double *made;
    int up_copies, down_copies; // per band
};

// Seconds from the submission of one frame to its last result byte.
double bands_time(const struct band bands[], int n, const struct band_work *, const struct link *);

// Both return the number of bands, at least 1; all start on even rows. Graded: the fastest of a
// family of gradings; one band if cutting gains little.
int bands_equal(struct band bands[BANDS_MAX], struct band rows, int n);
int bands_graded(struct band bands[BANDS_MAX], const struct band_work *, const struct link *);

#ifdef __cplusplus
}
#endif
#endif
