// What a camera's pictures of one geometry need: the elements that are made of each picture, and
// the backend's plan with its buffers. The camera's thread calls everything here.
#ifndef FRAMED_DAEMON_TRANSFORM_GEOMETRY_H
#define FRAMED_DAEMON_TRANSFORM_GEOMETRY_H

#include "daemon/decode/frame.h"
#include "daemon/device/budget.h"
#include "daemon/device/devices.h"
#include "daemon/output/subscriptions.h"

// What one op makes of a picture: all that an output shows of it, or a tile.
struct element {
    struct op op;
    struct rect region; // of the picture, which the op sees
    const char *name;   // of the camera's region that it is; "": none. The output's.
};

struct geometry {
    struct image source;      // pictures like this one; format PIXEL_NONE: closed
    struct element *elements; // by subscription, and in the order of the plan's ops
    int n;
    // Where each subscription's elements start: it has [first[i], first[i + 1]), in the order of
    // tiles_make, and none where its output cannot be made from such a source.
    int first[CAMERA_OUTPUTS_MAX + 1];
    struct job_result *results; // n of each frame in flight, FRAMES_IN_FLIGHT_MAX times
    struct plan *plan;          // NULL: no output can be made
    size_t reserved;            // device memory, of the lease
};

// Whether ops and plans that are made for the one are so for the other.
bool geometry_is_alike(const struct image *, const struct image *);
bool geometry_fits(const struct geometry *, const struct image *source);
// Of a closed one, for pictures like the frame's. An output that cannot be made stays without op.
// `notice` gets a sentence on what cannot be, or "". 0; -ENOSPC: the device has no room; other
// negative errno. Closed on error.
int geometry_open(struct geometry *, const struct device_lease *, const struct subscriptions *,
                  const struct frame *, char *notice, size_t size);
// What makes the first of the elements that the subscription has of such a picture. 0, or -EINVAL
// where it has none.
int geometry_first(struct op_params *ret, const struct subscription *, const struct image *source);
// Reserves `bytes` of the lease's device in *reserved, and opens a plan. `notice` gets a sentence
// where the device has no room. Errors as geometry_open; on error *reserved is the caller's, too.
int geometry_open_plan(struct plan **ret, size_t *reserved, size_t bytes,
                       const struct device_lease *, const struct image *source,
                       const struct op *const ops[], int n, char *notice, size_t size);
// Appends a sentence: that the output cannot be made from such a source, and why.
void geometry_note(const struct image *source, const char *output, int rc, char *notice,
                   size_t size);
// Waits for the plan's jobs. Accepts a closed one.
void geometry_close(struct geometry *, const struct device_lease *);

#endif
