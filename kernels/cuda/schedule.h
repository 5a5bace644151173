// The schedule of a frame on a device: which source rows are uploaded together, which rows of which
// results are made after them, and on which streams. Pure.
#ifndef FRAMED_KERNELS_CUDA_SCHEDULE_H
#define FRAMED_KERNELS_CUDA_SCHEDULE_H

#include "kernels/bands.h"

#ifdef __cplusplus
extern "C" {
#endif

// Streams where their number is left to the backend: whole frames take turns on the first ones,
// frames in bands use one for each of upload, kernel and download.
enum { STREAMS_WHOLE = 8, STREAMS_BANDS = 3, STREAMS_AUTO = STREAMS_WHOLE + STREAMS_BANDS };

enum { CUDA_ITEMS_MAX = 32 }; // of one launch

struct schedule_options {
    int streams;       // 0 = left to the backend
    size_t band_bytes; // as backend_options
    struct link link;
};

// One band of one result.
struct step {
    int op;
    struct band out;
};

// A source band and what is made once it is on the device.
struct slice {
    struct band rows;         // luma; empty where no op reads anything
    int first, end;           // its steps
    int from;                 // the first slice whose rows its steps read
    int up, kernel, download; // streams, for schedule_stream
};

struct schedule {
    int slices, steps;
    struct slice slice[BANDS_MAX];
    struct step *step; // by slice; those of one kernel launch side by side; then those of `whole`
    // All results at once, for a frame that is on the device and whose results stay there: nothing
    // is copied, and bands would only be more launches.
    struct slice whole;
    int base, streams; // the streams that its frames use
    bool rotates;      // each frame starts on another of them
    int frame_streams; // the most that one frame uses
};

// 0, or -ENOMEM. schedule_finish accepts a zeroed one.
int schedule_init(struct schedule *, const struct image *src, const struct op *const ops[], int n,
                  const struct schedule_options *);
void schedule_finish(struct schedule *);

// The stream that a slice's number means for the frame that starts at `first_stream`.
static inline int schedule_stream(const struct schedule *schedule, int number,
                                  unsigned first_stream)
{
    return schedule->base + (int)((number + first_stream) % (unsigned)schedule->streams);
}

// Copies in which rows `out` of a result come down: all rows in one, else each plane in one, or all
// planes in one where they are alike.
int schedule_copies(const struct op *, struct band out);

// Whether steps of two ops may share a launch.
bool ops_share_launch(const struct op *a, const struct op *b);

#ifdef __cplusplus
}
#endif
#endif
