// The memory of a configuration, computed before anything runs. Needs no device; any thread.
#ifndef FRAMED_DAEMON_DEVICE_BUDGET_H
#define FRAMED_DAEMON_DEVICE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "kernels/backend.h"

// --- placement
// Chooses one of several GPUs for a camera. Pure.

// The use of a GPU by cameras, as planned by the budget.
struct gpu_share {
    size_t bytes;    // of its memory
    uint64_t pixels; // decoded by its NVDEC, one picture of each camera
    int cameras;
};

struct placement_gpu {
    int number;       // as in cuda.devices
    uint8_t uuid[16]; // zeros: unknown
    bool usable;
    struct gpu_share taken;
    size_t limit; // of taken.bytes
};

// The devices of a machine that a configuration is planned for.
struct machine {
    const struct backend_driver *driver; // of most pictures
    bool nvdec;
    struct placement_gpu gpus[GPUS_MAX];
    int n_gpus; // 0: no GPU, or unknown ones
};

// Adds a camera's share to a GPU, or with `sign` -1 takes it off.
void placement_add(struct gpu_share *to, const struct gpu_share *, int sign);

// Returns the index of the GPU that the camera chooses, with or without room; else of the one with
// the most room: among GPUs with memory for the camera (among all, if none has) the one whose NVDEC
// has the least to decode, then the smallest part of its memory taken, then the fewest cameras,
// then the first. -1: none is usable.
int placement_choose(const struct placement_gpu[], int n, const struct gpu_choice *, size_t bytes);
// True if the camera chooses this GPU and no other.
bool placement_is_chosen(const struct placement_gpu *, const struct gpu_choice *);

// --- the budget

enum {
    FRAMES_IN_FLIGHT_MAX = 4, // the most frames of one camera in a backend at once
    FRAMES_HELD_MAX = FRAMES_IN_FLIGHT_MAX + 1, // plus the one that the camera's thread has
};

// The most memory of one copy's packets: that wait for a disk or server, a minute at 4 Mbit/s; and
// that are remembered for clips.
enum { COPY_WAITING_BYTES = 32 << 20, COPY_BEFORE_BYTES = 256 << 20 };

// Returns how many frames of one camera this backend has at once: more would only hold memory.
int frames_in_flight(const struct backend_driver *);

// Returns the device memory of one NVDEC decoder: its surfaces, and its state beside them.
// `surfaces` includes surfaces for held frames; 0: unknown. Measured on an H200, driver 580.
size_t budget_nvdec(enum stream_codec, int width, int height, int bits, int surfaces);

// Returns the camera's stream; before its first picture, one of 1920x1080 with as many pictures as
// H.264 allows. Pictures are at least as large as `picture`.
struct stream_memory budget_stream(const struct camera_config *);

// Host memory counts as `pinned`: pictures and slots, page-locked if the backend pins any, and the
// memory of inputs and decoders.
struct budget {
    struct memory_need all; // as printed
    // Without packets that wait for a disk that hangs, and without decoders of files that take
    // their memory with the first picture: without this much a configuration is refused.
    struct memory_need certain;
    // On the host: the same with each cpu decoder counted by budget_decoder. Decoders that need
    // more take it from the memory_reserve.
    size_t reserved;
};
// Returns the need of one camera with 8-bit pictures on that backend; `nvdec`: decoded there.
// Leaves out outputs that cannot be made from such a picture.
struct budget budget_camera(const struct camera_config *, const struct backend_driver *,
                            bool nvdec);

// Returns the bytes planned for the pictures and tables of the camera's cpu decoder before its
// first picture. 0: a file without `picture`, which takes all of it with its first picture.
size_t budget_decoder(const struct camera_config *);

// Returns how many pictures of a camera with num / den pictures a second (0/0: unknown) an output
// with crops keeps: all within crops.keep, and one more.
int budget_kept_pictures(const struct crops_config *, int num, int den);
// The same for a camera that has not connected yet.
int budget_planned_pictures(const struct camera_config *, const struct output_config *);

// Returns the need of a batch's results, which its cameras share and budget_camera leaves out.
struct memory_need budget_batch(const struct config *, const struct output_config *batch,
                                const struct backend_driver *);

// Returns the camera's share of a GPU, as budget_check counts it.
struct gpu_share budget_share(const struct camera_config *, const struct backend_driver *,
                              bool nvdec);

// True if NVDEC should decode the camera, on a machine with NVDEC.
bool budget_wants_nvdec(const struct camera_config *, const struct backend_driver *);

// Returns the memory that cameras share, beside their own.
struct memory_need budget_shared(const struct config *, const struct machine *);
// Returns the sum of all cameras, batches and shared memory.
struct budget budget_sum(const struct config *, const struct machine *);

// Returns the usable memory of a device that has `device_bytes` (0: unknown): `cuda.memory`, but
// always leaves some for contexts and kernels. SIZE_MAX: nothing is known.
size_t budget_limit(const struct config *, size_t device_bytes);

// Returns the memory of this machine, or the limit of its control group if that is less, bytes.
size_t budget_host_limit(void);

// Checks that all cameras have room: on each GPU within its limit (budget_limit), placed in their
// order by placement_choose, and in the memory of this machine and its control group. A file
// without `picture` counts without its decoder, at a reload too, and a copy without packets that
// wait for a disk that hangs. `framed check` and `framed run` call it before a camera starts.
// Returns 0, or -ENOSPC with a sentence in `why`: "cameras need 151.2 GiB of device memory,
// cuda.memory allows 139.0 GiB", and the keys.
int budget_check(const struct config *, const struct machine *, char *why, size_t size);

#endif
