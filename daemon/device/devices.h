// What the daemon computes with: a side is a backend that runs kernels and, for cuda, the device
// that decodes. When cuda fails, the cpu side takes over; cuda is opened again, with back-off, once
// nobody uses what failed, and then takes over in its turn. Results are the same bytes on either
// side.
//
//     devices_join -> work ... devices_stale? -> let go of everything of the side -> devices_leave
//     -> devices_join
//
// Thread-safe after devices_open. A thread of the engine's own closes and opens sides.
#ifndef FRAMED_DAEMON_DEVICE_DEVICES_H
#define FRAMED_DAEMON_DEVICE_DEVICES_H

#include "config/config.h"
#include "daemon/decode/decoder.h"
#include "kernels/backend.h"

struct devices;
struct device; // private to the engine

// One user's hold on a side: everything made of `backend` and `device` is given back before
// devices_leave.
struct device_lease {
    struct device *side; // NULL: not joined
    const struct backend_driver *driver;
    struct backend *backend;
    struct decode_device *device; // NULL: no NVDEC
    bool cpu_only;
    // Private to engine.c: devices_watch
    void (*failed)(void *opaque);
    void *opaque;
    struct device_lease *next;
};

// Opens what the configuration wants and this box has, and logs it. Returns 0, -ENODEV where a
// device that the configuration demands is missing, or other negative errno; the reason is logged.
// The configuration outlives the engine.
int devices_open(struct devices **ret, const struct config *);
// The same with these drivers for its sides; NULL: there is no cuda.
int devices_open_with(struct devices **ret, const struct config *,
                      const struct backend_driver *cuda, const struct backend_driver *cpu);
// Whether these cameras have room and what they demand; to be asked before the first of them joins.
// -ENOSPC or -ENODEV: `why` says in one sentence what is too much, or missing.
int devices_admit(struct devices *, const struct config *, char *why, size_t size);
void devices_close(struct devices *); // after every user has left; accepts NULL

// The side to work with now. With `cpu_only` the cpu's, for a user whom the device has no room for.
// 0 or negative errno: no side can be opened.
int devices_join(struct devices *, struct device_lease *ret, bool cpu_only);
// For a user who may be waiting for something else when the side fails: `failed` is called then, at
// once where it has, on any thread. It must not block nor call the engine. *use stays where it is
// until devices_leave.
void devices_watch(struct devices *, struct device_lease *, void (*failed)(void *), void *opaque);
void devices_leave(struct devices *, struct device_lease *); // zeroes it; accepts a zeroed one
// Whether another side has taken over: cheap, to be asked for every frame.
bool devices_stale(const struct devices *, const struct device_lease *);
// The side's device failed with `error`: the first report of it makes the cpu side take over and is
// logged; what the cpu side reports is logged alone.
void devices_failed(struct devices *, const struct device_lease *, int error);

// Counts device memory that a user of a cuda side is about to take, against `cuda.memory` or what
// the device has. -ENOSPC: too much; nothing is counted then, and *left says what is still free.
int devices_reserve(struct devices *, const struct device_lease *, size_t bytes, size_t *left);
void devices_unreserve(struct devices *, const struct device_lease *, size_t bytes);

// Of the side that works now: for metrics and log lines.
const char *devices_backend_name(const struct devices *);
// The same in more words ("NVIDIA H200, 8 streams"); "" where it is not open.
void devices_describe(struct devices *, char *to, size_t size);
// How long NVDEC was busy since it was opened, ns, which begins anew when it is opened again.
// False: there is none now.
bool devices_nvdec_busy(struct devices *, uint64_t *ret);
// What the backend's jobs took of its device; it begins anew like NVDEC's. False: there is none
// now.
bool devices_device_busy(struct devices *, struct device_busy *ret);
// What the budget plans for these cameras on the side that works now, and what they may take of its
// device in all; SIZE_MAX: not limited, or there is none.
struct devices_memory {
    struct memory_need need;
    size_t device_limit;
};
void devices_memory(struct devices *, const struct config *, struct devices_memory *ret);
uint64_t devices_fallbacks(const struct devices *); // times that the cpu side had to take over

#endif
