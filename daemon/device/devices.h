// The devices that the daemon computes with: the GPUs, and the CPU, on which cameras go on when no
// GPU has room or works. A camera holds a lease on one of them. It belongs to the GPU that its
// `device` chooses, else to the one with the most room when it first came, and stays there. When
// that fails, its cameras' leases are stale: each camera releases its lease and acquires another,
// and does so again when its GPU is back. Results are the same bytes on every device.
//
// Any thread, also several at once. Nothing is opened or closed under the lock that every function
// here takes: only threads that want a device wait for it.
#ifndef FRAMED_DAEMON_DEVICE_DEVICES_H
#define FRAMED_DAEMON_DEVICE_DEVICES_H

#include "config/config.h"
#include "daemon/decode/decoder.h"
#include "daemon/device/placement.h"
#include "kernels/backend.h"

struct devices;
struct device; // private to device_set.h

enum { DEVICES_MAX = GPUS_MAX + 1 };

// Where a camera belongs; private to leases.c.
struct device_place {
    struct device *home; // a GPU; NULL: none yet
    unsigned avoided;    // bit i: GPU i, by device_avoid
};

// Zeroed before the first device_acquire. Whoever has it gives back everything made with `backend`
// and `nvdec` before device_release.
struct device_lease {
    struct device *device; // NULL: nothing is leased
    const struct backend_driver *driver;
    struct backend *backend;
    struct decode_device *nvdec; // NULL: the device has no NVDEC
    int number;                  // of the GPU, as in cuda.devices; -1: the CPU
    // Private to leases.c:
    struct devices *devices;
    struct gpu_share share;
    struct device_place place; // outlives device_release
    void (*failed)(void *opaque);
    void *opaque;
    struct device_lease *next;
};

// The numbers of the GPUs that the configuration wants: those of cuda.devices, or all of this box.
struct gpu_list devices_wanted(const struct config *, const struct backend_driver *gpu);
// Opens what the configuration wants and this machine has, and logs it. Returns 0, -ENODEV where a
// device that the configuration demands is missing, or other negative errno; the reason is logged.
// The configuration outlives the devices. Blocks.
int devices_open(struct devices **ret, const struct config *);
// The same with these drivers, the GPUs by `gpu`; NULL: there are none.
int devices_open_with(struct devices **ret, const struct config *, const struct backend_driver *gpu,
                      const struct backend_driver *cpu);
void devices_close(struct devices *); // after the last device_release; blocks; accepts NULL
// Opens NVDEC where these cameras want it and it is not open, before devices_admit; devices_open
// has done so for its configuration. Blocks. 0, or -ENODEV: a camera demands it and no device has
// it, which `why` says in one sentence.
int devices_provide(struct devices *, const struct config *, char *why, size_t size);
// Whether there is room for these cameras; asked before the first of them acquires a device. 0;
// -ENOSPC, or -ENODEV where backend: cuda demands the GPU that a camera chooses and it is missing:
// `why` says in one sentence what is wrong.
int devices_admit(struct devices *, const struct config *, char *why, size_t size);

// The device to work with now, for this camera; NULL: for nobody in particular. 0 or negative
// errno. Blocks: it may open the device.
int device_acquire(struct devices *, const struct camera_config *, struct device_lease *);
// Zeroes the lease but for where its camera belongs; accepts a zeroed one.
void device_release(struct device_lease *);
// The leased device has no room for the camera's pictures: the lease is stale, and device_acquire
// takes other devices until device_reconsider.
void device_avoid(struct device_lease *);
// Devices that had no room may have some now.
void device_reconsider(struct device_lease *);
// Calls `failed` once if the leased device fails, at once where it has failed already, on any
// thread. `failed` must neither block nor call the devices. The lease stays where it is in memory
// until device_release.
void device_on_failure(struct device_lease *, void (*failed)(void *), void *opaque);
// Whether the camera is to release the lease and to acquire another, since its device has failed or
// the one that it belongs to is back. Cheap, to be asked for every frame, by the lease's thread.
bool device_is_stale(const struct device_lease *);
// The leased device failed with `error`. Of a GPU the first report is logged, and makes its leases
// stale; of the CPU every report is logged and nothing else happens.
void device_failed(const struct device_lease *, int error);

// Counts memory of the leased device that is about to be taken, against `cuda.memory` or what the
// device has. -ENOSPC: too much; nothing is counted then, and *left says what is still free.
int device_reserve(const struct device_lease *, size_t bytes, size_t *left);
// The same for what cameras can do without: a sixteenth of the limit stays free for them.
int device_reserve_spare(const struct device_lease *, size_t bytes, size_t *left);
void device_unreserve(const struct device_lease *, size_t bytes);

// Hardware decoders that `framed verify` compared, NVDEC apart; they belong to no lease.
const struct hardware_record *devices_verified_decoders(const struct devices *);
struct memory_reserve *devices_memory_reserve(struct devices *);

// For status and metrics; none blocks.
const char *devices_backend_name(struct devices *); // "cuda" while any GPU works, else "cpu"

struct device_status {
    int number;            // of the GPU, as in cuda.devices; -1: the CPU
    uint8_t uuid[16];      // zeros: not known
    char description[128]; // "NVIDIA H200, 8 streams"; "" where it is not open
    bool works;
    int cameras;            // that lease it
    size_t reserved, limit; // of its memory, bytes; SIZE_MAX: not limited, or it has none
    // How long NVDEC was busy since it was opened, and what the backend's jobs took of the device:
    // both begin anew when they are opened again.
    bool has_nvdec, has_busy;
    uint64_t nvdec_busy_ns;
    struct device_busy busy;
};
// The GPUs and then the CPU; returns how many these are.
int devices_status(struct devices *, struct device_status ret[DEVICES_MAX]);

// What the budget plans for these cameras, and what they may take of the memory of all GPUs that
// work; SIZE_MAX: not limited, or there is none.
struct devices_memory {
    struct memory_need need;
    size_t device_limit;
};
void devices_memory(struct devices *, const struct config *, struct devices_memory *ret);
uint64_t devices_fallbacks(const struct devices *); // times that a GPU failed

#endif
