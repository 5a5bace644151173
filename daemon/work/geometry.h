// A camera's pictures of one geometry: the elements made from each picture, the backend's plan with
// its buffers, and the items of results that elements fill. Camera's thread only.
#ifndef FRAMED_DAEMON_WORK_GEOMETRY_H
#define FRAMED_DAEMON_WORK_GEOMETRY_H

#include "daemon/base/loop.h"
#include "daemon/base/stage_watch.h"
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

// The n elements of a picture for one output.
struct elements {
    const struct element *list;
    int n;
};

struct geometry {
    // The owner's, which sets them once:
    const struct device_lease *lease;
    struct subscriptions *outputs;   // the list's, a reference; NULL: of crops
    const struct subscription *list; // n_outputs of them
    int n_outputs;
    // If it is open:
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

enum { NOTICE_MAX = 256 };

// True if ops and plans made for one also fit the other.
bool geometry_is_alike(const struct image *, const struct image *);
// Opens a closed geometry for pictures like this one. An output that cannot be made gets no
// element; one with crops gets as many as its batch has, each of the whole picture, which jobs
// replace; those for viewers, which are last, get none if the device has too little room for them.
// Reserves the device memory of it all, and `bytes` more; takes over what `former` (NULL: none) has
// reserved for results and surfaces. Appends to `notice` a sentence about outputs without elements,
// or about a device without room. Returns 0, -ENOSPC (the device has no room) or another negative
// errno. Closed on error.
int geometry_open(struct geometry *, const struct image *, size_t bytes, struct geometry *former,
                  char notice[NOTICE_MAX]);
// Waits for the plan's jobs. Accepts a closed geometry.
void geometry_close(struct geometry *);
struct elements geometry_elements(const struct geometry *, int subscription);

// --- the items that elements fill, of pictures and of crops (claim.c)

// A picture that is offered to outputs.
struct claim {
    struct frame *frame;
    uint64_t number;                 // of the picture among the camera's
    int64_t wait_until_ns;           // CLOCK_MONOTONIC: for room, whatever `overflow` is
    const _Atomic bool *stop;        // the camera stops
    const _Atomic bool *interrupted; // ends waits
    struct stage_watch *stages;
    int64_t opening_ns; // the time to open memory is added here
};

// Offers the picture to one output. Claims items for its elements and describes them: in *ret, from
// *first on. Waits for room only in an output that is neither a share in a batch nor for viewers.
// Returns 0 or a negative errno: the output has lost the picture, with the reason counted, or a
// batch has parked it. For viewers also -EAGAIN, not now; a lasting reason is in demand->refused,
// too.
int claim_items(struct claim *, struct output *, const struct elements *, struct result **ret,
                int *first);
// Describes the elements' items from `first` on.
void elements_describe(struct result *, int first, const struct elements *, const struct output *,
                       const struct frame_info *, uint64_t sequence, uint64_t ordinal);
// Makes a job fill these items.
void elements_fill(struct job_result *, const struct elements *, struct result *, int first);
// Returns the format of results whose elements are made by `op`, from pictures like the frame's,
// with the data at `data`.
struct result_format elements_format(const struct op *, const struct output *, const struct frame *,
                                     void *data);
// Returns the loss for a failed claim: no result exists that could count it. `stopping`: -ECANCELED
// means stopping; else the device has failed.
enum loss claim_loss(int rc, bool stopping);

// --- crops (crops.c), the camera's: a list
// Outputs of the objects that clients found in another output of their camera: each box becomes an
// element of a batch, made from the camera's own picture. The camera's thread keeps its pictures
// for a while. A request (output/crop_requests.h), served on a thread of libuv, finds its picture
// there and becomes one job for all boxes. A request whose picture is gone is late.
struct crops;

// Switches to the crops of these subscriptions; crops that stay keep their pictures. Logs those
// that cannot be opened. Requests before crops_prepare are late.
void crops_subscribe(struct crops **list, const struct subscriptions *, const struct device_lease *,
                     struct event_queue *);
void crops_close(struct crops **list); // drains
// Switches to pictures like this one, num / den of them a second (0/0: unknown), if the last
// ones were different. `notice` gets a sentence if an output cannot be made from them or the device
// has no room. Returns 0, -ENOSPC (the device has no room) or another negative errno. The lease is
// acquired from here to crops_drain.
int crops_prepare(struct crops *list, const struct image *, int num, int den,
                  char notice[NOTICE_MAX]);
// Keeps the picture, which the caller still owns, for requests to come, for crops whose source
// output was offered it and did not thin it out.
void crops_keep(struct crops *list, struct frame *);
// Returns the longest time that any of them keeps a picture, ns.
int64_t crops_keep_ns(const struct crops *list);
// Waits for jobs and releases pictures and buffers. Call before the lease is released.
void crops_drain(struct crops *list);

#endif
