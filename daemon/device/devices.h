// The devices for the daemon's computations: the GPUs, and the CPU, which takes cameras when no GPU
// has room or works. A camera holds a lease on one of them. It belongs to the GPU chosen by its
// `device`, else to the one with the most room when it first came, and stays there. If that GPU
// fails, its cameras' leases are stale: each camera releases its lease and acquires another, and
// does so again when its GPU is back. Results are the same bytes on every device.
//
// Any thread, also several at once. Most functions here take a lock, but nothing is opened or
// closed under it: only threads that need that device wait.
#ifndef FRAMED_DAEMON_DEVICE_DEVICES_H
#define FRAMED_DAEMON_DEVICE_DEVICES_H

#include "config/config.h"
#include "daemon/codec/decoder.h"
#include "daemon/device/budget.h"
#include "kernels/backend.h"

struct devices;
struct device; // private to devices.c

enum { DEVICES_MAX = GPUS_MAX + 1 };

// The GPU that a camera belongs to; private to devices.c.
struct device_place {
    struct device *home; // a GPU; NULL: none yet
    unsigned avoided;    // bit i: GPU i, by device_avoid
};

// Zeroed before the first device_acquire. The owner closes everything made with `backend` and
// `nvdec` before device_release.
struct device_lease {
    struct device *device; // NULL: nothing is leased
    const struct backend_driver *driver;
    struct backend *backend;
    struct decode_device *nvdec; // NULL: the device has no NVDEC
    int number;                  // of the GPU, as in cuda.devices; -1: the CPU
    // Private to devices.c:
    struct devices *devices;
    struct gpu_share share;
    struct device_place place; // survives device_release
    void (*failed)(void *opaque);
    void *opaque;
    struct device_lease *next;
};

// Returns a sentence with the processors in cpu.pin's list that this process may not use; the
// caller frees it. NULL: it may use all of them, or there is no list. Any thread.
char *pinning_left_out(const struct config *);
// Returns the numbers of the configured GPUs: the list in cuda.devices, or all of this machine.
struct gpu_list devices_wanted(const struct config *, const struct backend_driver *gpu);
// Opens the configured devices that this machine has, and logs them. Returns 0, -ENODEV if a
// demanded device is missing, or another negative errno; the reason is logged. The configuration
// outlives the devices. Blocks.
int devices_open(struct devices **ret, const struct config *);
// The same with these drivers; `gpu` NULL: there are no GPUs.
int devices_open_with(struct devices **ret, const struct config *, const struct backend_driver *gpu,
                      const struct backend_driver *cpu);
void devices_close(struct devices *); // after the last device_release; blocks; accepts NULL
// Opens NVDEC if these cameras need it and it is not open. Call before devices_admit; devices_open
// has done so for its configuration. Blocks. Returns 0, or -ENODEV with a sentence in `why`: a
// camera demands NVDEC, which no device has.
int devices_provide(struct devices *, const struct config *, char *why, size_t size);
// Checks the room for these cameras; call before the first of them acquires a device. Returns 0,
// -ENOSPC, or -ENODEV: backend cuda, and the GPU that a camera chooses is missing. `why` gets the
// reason in one sentence.
int devices_admit(struct devices *, const struct config *, char *why, size_t size);

// Acquires the device to work with now, for this camera (NULL: for none in particular). Returns 0
// or a negative errno. Blocks: it may open the device.
int device_acquire(struct devices *, const struct camera_config *, struct device_lease *);
// Releases the device; zeroes the lease except for the camera's place; accepts a zeroed one.
void device_release(struct device_lease *);
// Notes that the leased device has no room for the camera's pictures: the lease is stale, and
// device_acquire takes other devices until device_reconsider.
void device_avoid(struct device_lease *);
// Allows devices again that had no room: they may have some now.
void device_reconsider(struct device_lease *);
// Calls `failed` once if the leased device fails, at once if it has failed already, on any thread.
// `failed` must neither block nor call the devices. The lease must not move in memory until
// device_release.
void device_on_failure(struct device_lease *, void (*failed)(void *), void *opaque);
// True if the camera should release the lease and acquire another: its device has failed or its own
// GPU is back. Cheap, for every frame; called by the lease's thread.
bool device_is_stale(const struct device_lease *);
// Reports that the leased device failed with `error`. For a GPU the first report is logged, and
// makes its leases stale; for the CPU every report is only logged.
void device_failed(const struct device_lease *, int error);

// Counts memory of the leased device before it is allocated, against `cuda.memory` or the device's
// size. -ENOSPC: too much; nothing is counted then, and *left is the free rest.
int device_reserve(const struct device_lease *, size_t bytes, size_t *left);
// The same for memory that cameras can do without: leaves them a sixteenth of the limit.
int device_reserve_spare(const struct device_lease *, size_t bytes, size_t *left);
void device_unreserve(const struct device_lease *, size_t bytes);

// Hardware decoders compared by `framed verify`, except NVDEC; they belong to no lease.
const struct hardware_record *devices_verified_decoders(const struct devices *);
struct memory_reserve *devices_memory_reserve(struct devices *);

// For status and metrics; none blocks.
const char *devices_backend_name(struct devices *); // "cuda" while any GPU works, else "cpu"

struct device_status {
    int number;            // of the GPU, as in cuda.devices; -1: the CPU
    uint8_t uuid[16];      // zeros: unknown
    char description[128]; // "NVIDIA H200, 8 streams"; "": not open
    bool works;
    int cameras;            // with a lease
    size_t reserved, limit; // of its memory, bytes; SIZE_MAX: no limit, or no memory
    // Busy time of NVDEC since it was opened, and the device's use by the backend's jobs: both
    // restart when they are opened again.
    bool has_nvdec, has_busy;
    uint64_t nvdec_busy_ns;
    struct device_busy busy;
};
// Lists the GPUs and then the CPU; returns their number.
int devices_status(struct devices *, struct device_status ret[DEVICES_MAX]);

// Memory planned by the budget for these cameras, and their limit in the memory of all working
// GPUs; SIZE_MAX: no limit, or no such GPU.
struct devices_memory {
    struct memory_need need;
    size_t device_limit;
};
void devices_memory(struct devices *, const struct config *, struct devices_memory *ret);
uint64_t devices_fallbacks(const struct devices *); // number of GPU failures

#endif
