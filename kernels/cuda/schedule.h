// The schedule of a frame on a device: which source rows are uploaded together, which result rows
// follow each upload, and on which streams. Pure.
#ifndef FRAMED_KERNELS_CUDA_SCHEDULE_H
#define FRAMED_KERNELS_CUDA_SCHEDULE_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- bands
//
// Cuts a big frame into bands so that upload, kernel and download overlap. Cuts are chosen by
// simulation with the measured speeds of the link. Pure.

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

// --- the schedule

// Streams if the backend chooses their number: whole frames rotate over the first ones, frames in
// bands use one each for upload, kernel and download.
enum { STREAMS_WHOLE = 8, STREAMS_BANDS = 3, STREAMS_AUTO = STREAMS_WHOLE + STREAMS_BANDS };

enum { CUDA_ITEMS_MAX = 32 }; // per launch

struct schedule_options {
    int streams;       // 0: chosen by the backend
    size_t band_bytes; // as in backend_options
    struct link link;
};

// One band of one result.
struct step {
    int op;
    struct band out;
};

// A source band, and the steps to make once it is on the device.
struct slice {
    struct band rows;         // luma; empty if no op reads anything
    int first, end;           // its steps
    int from;                 // the first slice whose rows its steps read
    int up, kernel, download; // streams, for schedule_stream
};

struct schedule {
    int slices, steps;
    struct slice slice[BANDS_MAX];
    struct step *step; // by slice, steps of one kernel launch adjacent; then the steps of `whole`
    // All results at once, for a frame on the device whose results stay there: nothing is copied,
    // and bands would only add launches.
    struct slice whole;
    int base, streams; // the streams that its frames use
    bool rotates;      // each frame starts on another of them
    int frame_streams; // the most that one frame uses
};

// Returns 0 or -ENOMEM. schedule_finish accepts a zeroed schedule.
int schedule_init(struct schedule *, const struct image *src, const struct op *const ops[], int n,
                  const struct schedule_options *);
void schedule_finish(struct schedule *);

// Returns the stream of a slice's stream number, for a frame that starts at `first_stream`.
static inline int schedule_stream(const struct schedule *schedule, int number,
                                  unsigned first_stream)
{
    return schedule->base + (int)((number + first_stream) % (unsigned)schedule->streams);
}

// Returns the number of copies that download rows `out` of a result: one for all rows, or one per
// plane, or one for all planes if they have the same layout.
int schedule_copies(const struct op *, struct band out);

// Returns true if steps of the two ops may share a launch.
bool ops_share_launch(const struct op *a, const struct op *b);

#ifdef __cplusplus
}
#endif
#endif
