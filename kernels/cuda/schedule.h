// The schedule of a frame on a device: which source rows are uploaded together, which result rows
// follow each upload, and on which streams. Pure.
#ifndef FRAMED_KERNELS_CUDA_SCHEDULE_H
#define FRAMED_KERNELS_CUDA_SCHEDULE_H

#include "kernels/bands.h"

#ifdef __cplusplus
extern "C" {
#endif

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
