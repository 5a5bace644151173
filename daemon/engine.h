// What the daemon computes with: a side is a backend that runs kernels and, for cuda, the device
// that decodes. When cuda fails, the cpu side takes over; cuda is opened again, with back-off, once
// nobody uses what failed, and then takes over in its turn. Results are the same bytes on either
// side.
//
//     engine_join -> work ... engine_stale? -> let go of everything of the side -> engine_leave ->
//     engine_join
//
// Thread-safe after engine_open. A thread of the engine's own closes and opens sides.
#ifndef FRAMED_DAEMON_ENGINE_H
#define FRAMED_DAEMON_ENGINE_H

#include "config/config.h"
#include "daemon/camera/decode.h"
#include "kernels/backend.h"

struct engine;
struct side; // private to the engine

// One user's hold on a side: everything made of `backend` and `device` is given back before
// engine_leave.
struct engine_use {
    struct side *side; // NULL: not joined
    const struct backend_driver *driver;
    struct backend *backend;
    struct decode_device *device; // NULL: no NVDEC
    bool cpu_only;
    // Private to engine.c: engine_watch
    void (*failed)(void *opaque);
    void *opaque;
    struct engine_use *next;
};

// Opens what the configuration wants and this box has, and logs it. Returns 0, -ENODEV where a
// device that the configuration demands is missing, or other negative errno; the reason is logged.
// The configuration outlives the engine.
int engine_open(struct engine **ret, const struct config *);
// The same with these drivers for its sides; NULL: there is no cuda.
int engine_open_with(struct engine **ret, const struct config *, const struct backend_driver *cuda,
                     const struct backend_driver *cpu);
// Whether these cameras have room and what they demand; to be asked before the first of them joins.
// -ENOSPC or -ENODEV: `why` says in one sentence what is too much, or missing.
int engine_admit(struct engine *, const struct config *, char *why, size_t size);
void engine_close(struct engine *); // after every user has left; accepts NULL

// The side to work with now. With `cpu_only` the cpu's, for a user whom the device has no room for.
// 0 or negative errno: no side can be opened.
int engine_join(struct engine *, struct engine_use *ret, bool cpu_only);
// For a user who may be waiting for something else when the side fails: `failed` is called then, at
// once where it has, on any thread. It must not block nor call the engine. *use stays where it is
// until engine_leave.
void engine_watch(struct engine *, struct engine_use *, void (*failed)(void *), void *opaque);
void engine_leave(struct engine *, struct engine_use *); // zeroes it; accepts a zeroed one
// Whether another side has taken over: cheap, to be asked for every frame.
bool engine_stale(const struct engine *, const struct engine_use *);
// The side's device failed with `error`: the first report of it makes the cpu side take over and is
// logged; what the cpu side reports is logged alone.
void engine_failed(struct engine *, const struct engine_use *, int error);

// Counts device memory that a user of a cuda side is about to take, against `cuda.memory` or what
// the device has. -ENOSPC: too much; nothing is counted then, and *left says what is still free.
int engine_reserve(struct engine *, const struct engine_use *, size_t bytes, size_t *left);
void engine_unreserve(struct engine *, const struct engine_use *, size_t bytes);

// Of the side that works now: for metrics and log lines.
const char *engine_backend_name(const struct engine *);
// The same in more words ("NVIDIA H200, 8 streams"); "" where it is not open.
void engine_describe(struct engine *, char *to, size_t size);
// How long NVDEC was busy since it was opened, ns, which begins anew when it is opened again.
// False: there is none now.
bool engine_nvdec_busy(struct engine *, uint64_t *ret);
// What the backend's jobs took of its device; it begins anew like NVDEC's. False: there is none
// now.
bool engine_device_busy(struct engine *, struct device_busy *ret);
// What the budget plans for these cameras on the side that works now, and what they may take of its
// device in all; SIZE_MAX: not limited, or there is none.
struct engine_memory {
    struct memory_need need;
    size_t device_limit;
};
void engine_memory(struct engine *, const struct config *, struct engine_memory *ret);
uint64_t engine_fallbacks(const struct engine *); // times that the cpu side had to take over

#endif
