// The devices that the daemon computes with: each GPU, and the CPU, on which the cameras go on when
// a GPU fails. A camera holds a lease on one of them. When a GPU fails, or is back, its cameras'
// leases are stale: each camera releases its lease and acquires another. Results are the same bytes
// on every device.
//
// Any thread, also several at once. Nothing is opened or closed under the lock that every function
// here takes: only threads that want a device wait for it.
#ifndef FRAMED_DAEMON_DEVICE_DEVICES_H
#define FRAMED_DAEMON_DEVICE_DEVICES_H

#include "config/config.h"
#include "daemon/decode/decoder.h"
#include "kernels/backend.h"

struct devices;
struct device; // private to devices.c

enum device_wish {
    DEVICE_AUTO, // the GPU while it works, else the CPU
    DEVICE_CPU,  // of a camera that the GPU has no room for
};

// Whoever has it gives back everything made with `backend` and `nvdec` before device_release.
struct device_lease {
    struct device *device; // NULL: nothing is leased
    const struct backend_driver *driver;
    struct backend *backend;
    struct decode_device *nvdec; // NULL: the device has no NVDEC
    // Private to devices.c:
    struct devices *devices;
    enum device_wish wish;
    void (*failed)(void *opaque);
    void *opaque;
    struct device_lease *next;
};

// Opens what the configuration wants and this machine has, and logs it. Returns 0, -ENODEV where a
// device that the configuration demands is missing, or other negative errno; the reason is logged.
// The configuration outlives the devices. Blocks.
int devices_open(struct devices **ret, const struct config *);
// The same with these drivers; `gpu` NULL: there is none.
int devices_open_with(struct devices **ret, const struct config *, const struct backend_driver *gpu,
                      const struct backend_driver *cpu);
void devices_close(struct devices *); // after the last device_release; blocks; accepts NULL
// Opens NVDEC where these cameras want it and it is not open, before devices_admit; devices_open
// has done so for its configuration. Blocks. 0, or -ENODEV: a camera demands it and it is missing,
// which `why` says in one sentence.
int devices_provide(struct devices *, const struct config *, char *why, size_t size);
// Whether there is room for these cameras; asked before the first of them acquires a device. 0, or
// -ENOSPC: `why` says in one sentence what is too much.
int devices_admit(struct devices *, const struct config *, char *why, size_t size);

// The device to work with now. 0 or negative errno. Blocks: it may open the device.
int device_acquire(struct devices *, enum device_wish, struct device_lease *ret);
void device_release(struct device_lease *); // zeroes it; accepts a zeroed one
// Calls `failed` once if the leased device fails, at once where it has failed already, on any
// thread. `failed` must neither block nor call the devices. The lease stays where it is in memory
// until device_release.
void device_on_failure(struct device_lease *, void (*failed)(void *), void *opaque);
// Whether the camera is to release the lease and to acquire another, since its device has failed or
// a better one is back. Cheap, to be asked for every frame.
bool device_is_stale(const struct device_lease *);
// The leased device failed with `error`. Of a GPU the first report is logged, and makes its leases
// stale; of the CPU every report is logged and nothing else happens.
void device_failed(const struct device_lease *, int error);

// Counts memory of the leased device that is about to be taken, against `cuda.memory` or what the
// device has. -ENOSPC: too much; nothing is counted then, and *left says what is still free.
int device_reserve(const struct device_lease *, size_t bytes, size_t *left);
void device_unreserve(const struct device_lease *, size_t bytes);

// For status and metrics, about the device that DEVICE_AUTO gives now; none blocks.
const char *devices_backend_name(struct devices *);
// The same in more words ("NVIDIA H200, 8 streams"); "" where it is not open.
void devices_describe(struct devices *, char *to, size_t size);
// How long NVDEC was busy since it was opened, ns, which begins anew when it is opened again.
// False: there is none now.
bool devices_nvdec_busy(struct devices *, uint64_t *ret);
// What the backend's jobs took of its device; it begins anew like NVDEC's. False: there is none
// now.
bool devices_device_busy(struct devices *, struct device_busy *ret);
// What the budget plans for these cameras there, and what they may take of the device's memory in
// all; SIZE_MAX: not limited, or it has none.
struct devices_memory {
    struct memory_need need;
    size_t device_limit;
};
void devices_memory(struct devices *, const struct config *, struct devices_memory *ret);
uint64_t devices_fallbacks(const struct devices *); // times that a GPU failed

#endif
