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
    size_t reserved;            // bytes of the lease's device: the plan's, and
    size_t lasting;             // those of results and of NVDEC's surfaces
};

// True if ops and plans made for one also fit the other.
bool geometry_is_alike(const struct image *, const struct image *);
// Opens a closed geometry for pictures like this one, and for the n outputs of the list. An output
// that cannot be made gets no element; one with crops gets as many as its batch has, each of the
// whole picture, which jobs replace; those for viewers, which are last, get none if the device has
// too little room for them. Reserves the device memory of it all, and `bytes` more; takes over what
// `former` (NULL: none) has reserved for results and surfaces. `notice` gets a sentence about
// outputs without elements, or about a device without room. Returns 0, -ENOSPC (the device has no
// room) or another negative errno. Closed on error.
int geometry_open(struct geometry *, const struct device_lease *, const struct subscription *list,
                  int n, const struct image *, size_t bytes, struct geometry *former, char *notice,
                  size_t size);
// Returns in *ret the parameters of the subscription's first element for such a picture. 0, or
// -EINVAL if it has none.
int geometry_first(struct op_params *ret, const struct subscription *, const struct image *source);
// Waits for the plan's jobs. Accepts a closed geometry.
void geometry_close(struct geometry *, const struct device_lease *);

// --- the items that elements fill, of pictures and of crops
// The n elements of a picture for one output.
struct elements {
    const struct element *list;
    int n;
};

// Describes the elements' items from `first` on.
void elements_describe(struct result *, int first, const struct elements *, const struct output *,
                       const struct frame_info *, uint64_t sequence, uint64_t ordinal);
// Returns the format of results whose elements are made by `op`, at num / den pictures a second
// (0/0: unknown), with the data at `data`.
struct result_format elements_format(const struct op *, const struct output *, enum field_order,
                                     int num, int den, void *data);
// Returns the loss for a failed pool_claim or batch_claim: no result exists that could count it.
// `stopping`: -ECANCELED means stopping; else the device has failed.
enum loss claim_loss(int rc, bool stopping);

#endif
