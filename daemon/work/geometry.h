// Resources for a camera's pictures of one geometry: the elements made from each picture, and the
// backend's plan with its buffers. Camera's thread only.
#ifndef FRAMED_DAEMON_WORK_GEOMETRY_H
#define FRAMED_DAEMON_WORK_GEOMETRY_H

#include "daemon/codec/frame.h"
#include "daemon/device/budget.h"
#include "daemon/device/devices.h"
#include "daemon/output/subscriptions.h"

// The product of one op: all that an output shows of a picture, or a part such as a tile.
struct element {
    struct op op;
    struct rect region; // part of the picture that the op reads
    const char *name;   // of the camera's region, from the output; "": none
};

struct geometry {
    struct image source;      // pictures like this one; format PIXEL_NONE: closed
    struct element *elements; // grouped by subscription, in the order of the plan's ops
    int n;
    // Subscription i has elements [first[i], first[i + 1]), in the order of tiles_make; none if its
    // output cannot be made from such a source.
    int first[SUBSCRIPTIONS_MAX + 1];
    struct job_result *results; // n per frame in flight, FRAMES_IN_FLIGHT_MAX times
    struct plan *plan;          // NULL: no output can be made
    size_t reserved;            // bytes of the lease's device
};

// True if ops and plans made for one also fit the other.
bool geometry_is_alike(const struct image *, const struct image *);
bool geometry_fits(const struct geometry *, const struct image *source);
// Opens a closed geometry for pictures like the frame's. An output that cannot be made gets no op.
// `notice` gets a sentence about such outputs, or "". Outputs for viewers get no op if the device
// has no room for them, or too little beside them. Returns 0, -ENOSPC (the device has no room)
// or another negative errno. Closed on error.
int geometry_open(struct geometry *, const struct device_lease *, const struct subscriptions *,
                  const struct frame *, char *notice, size_t size);
// Returns in *ret the parameters of the subscription's first element for such a picture. 0, or
// -EINVAL if it has none.
int geometry_first(struct op_params *ret, const struct subscription *, const struct image *source);
// Reserves `bytes` of the lease's device in *reserved, and opens a plan. `notice` gets a sentence
// if the device has no room. Errors as geometry_open; the caller owns *reserved even on error.
int geometry_open_plan(struct plan **ret, size_t *reserved, size_t bytes,
                       const struct device_lease *, const struct image *source,
                       const struct op *const ops[], int n, char *notice, size_t size);
// Appends a sentence: that the output cannot be made from such a source, and why.
void geometry_note(const struct image *source, const char *output, int rc, char *notice,
                   size_t size);
// Waits for the plan's jobs. Accepts a closed geometry.
void geometry_close(struct geometry *, const struct device_lease *);

#endif
