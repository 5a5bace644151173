// What a camera's thread tells of its work while it goes on: that thread adds, any thread reads.
// Zeroed it is ready.
#ifndef FRAMED_DAEMON_CAMERA_PROGRESS_H
#define FRAMED_DAEMON_CAMERA_PROGRESS_H

#include <stdatomic.h>
#include <stdint.h>

#include "config/config.h"
#include "daemon/frame.h"

// What the thread is at: waits for packets, decodes them, waits for the backend or for clients.
enum camera_leg { LEG_READ, LEG_DECODE, LEG_SUBMIT, CAMERA_LEGS };

// The flags of pictures that are counted.
enum counted_flag { COUNTED_DAMAGED, COUNTED_INTERLACED, COUNTED_HDR, COUNTED_FLAGS };

struct progress {
    _Atomic uint64_t pictures; // that the decoder gave out
    _Atomic uint64_t flagged[COUNTED_FLAGS];
    _Atomic uint64_t converted; // by libswscale, to a format that kernels read
    _Atomic uint64_t size;      // of the last: width << 32 | height
    // Of struct stream_memory, for as long as `size` holds; 0: not known yet.
    _Atomic int pixel_bits, kept, surfaces, macroblock_bytes, codec;
    _Atomic uint64_t spent_ns[CAMERA_LEGS];
    const char *_Atomic backend; // that its pictures go to, its name; NULL: to none yet
    _Atomic int64_t submit_ns;   // when LEG_SUBMIT began, if the thread is in it; else 0
    int64_t lap_ns;              // the thread's own: up to when the time is counted
};

// Time counts from now on.
static inline void progress_start(struct progress *progress)
{
    progress->lap_ns = monotonic_ns();
}

// LEG_SUBMIT begins, which may take as long as a client likes.
static inline void progress_submit(struct progress *progress)
{
    atomic_store_explicit(&progress->submit_ns, progress->lap_ns, memory_order_relaxed);
}

// The time since the last call went into `leg`.
static inline void progress_lap(struct progress *progress, enum camera_leg leg)
{
    int64_t before = progress->lap_ns;
    progress_start(progress);
    atomic_store_explicit(&progress->submit_ns, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&progress->spent_ns[leg], (uint64_t)(progress->lap_ns - before),
                              memory_order_relaxed);
}

void progress_picture(struct progress *, const struct frame *);
const char *counted_flag_name(enum counted_flag); // "damaged"

static inline void progress_memory(struct progress *progress, const struct stream_memory *memory)
{
    atomic_store_explicit(&progress->pixel_bits, memory->pixel_bits, memory_order_relaxed);
    atomic_store_explicit(&progress->kept, memory->pictures, memory_order_relaxed);
    atomic_store_explicit(&progress->surfaces, memory->surfaces, memory_order_relaxed);
    atomic_store_explicit(&progress->codec, (int)memory->codec, memory_order_relaxed);
    atomic_store_explicit(&progress->macroblock_bytes, memory->macroblock_bytes,
                          memory_order_relaxed);
}

#endif
